# A matrix of R stored, and a box of it read: Rscript matrix.R, beside the gridstone.so that R CMD SHLIB made of gridstone.c.

gridstone <- dyn.load("gridstone.so")

write_matrix <- function(uri, matrix) .Call("write_matrix", uri, matrix, PACKAGE = "gridstone")
read_matrix <- function(uri, rows, columns) .Call("read_matrix", uri, as.double(c(range(rows), range(columns))), PACKAGE = "gridstone")

m <- outer(1:300, 1:200, function(row, column) row + column / 1000)
version <- write_matrix("matrix.gs", m)
stopifnot(version == 2, identical(read_matrix("matrix.gs", 1:300, 1:200), m))
stopifnot(identical(read_matrix("matrix.gs", 11:20, 101:150), m[11:20, 101:150]))

# An error of the library is one of R.
message <- tryCatch(read_matrix("nothing.gs", 1:2, 1:2), error = conditionMessage)
stopifnot(grepl("nothing.gs", message))
for (rows in list(0:1, c(1, NA), c(1, 1e300), c(1, 301), c(1, 4e9))) {
  message <- tryCatch(read_matrix("matrix.gs", rows, 1:2), error = conditionMessage)
  stopifnot(is.character(message))
}
cat("a matrix of", nrow(m), "x", ncol(m), "\n")
