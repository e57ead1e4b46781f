//! Columns of Rust's own numbers and texts, so that callers need not lay out bytes.
//!
//! Values of columns are little-endian, as the numbers of every machine that is supported are.

use super::{Column, ColumnView};
use crate::base::{AlignedBuf, Error, Result};
use crate::schema::{Datatype, Primitive};

#[cfg(not(target_endian = "little"))]
compile_error!("columns view numbers in place, which needs a little-endian machine");

/// A number of Rust that is a value of a datatype: `i8` to `i64`, `u8` to `u64`, `f32` and `f64`.
///
/// Times are `i64` (ticks of their unit since 1970-01-01), vectors such as `float32[3]` are three `f32` side by side.
pub trait Native: bytemuck::Pod + sealed::Sealed {
    /// The datatype of a single one.
    const DATATYPE: Datatype;

    /// Whether values of `datatype` consist of such numbers.
    fn holds(datatype: Datatype) -> bool {
        let single = match datatype {
            Datatype::Vector(primitive, _) => Some(primitive),
            single => Primitive::of(single),
        };
        match single {
            Some(Primitive::Datetime(_) | Primitive::Timedelta(_)) => Self::DATATYPE == Datatype::Int64,
            Some(Primitive::Bool) => Self::DATATYPE == Datatype::UInt8,
            Some(Primitive::Complex64) => Self::DATATYPE == Datatype::Float32,
            Some(Primitive::Complex128) => Self::DATATYPE == Datatype::Float64,
            Some(primitive) => Self::DATATYPE == primitive.datatype(),
            None => matches!(datatype, Datatype::FixedBytes(_)) && Self::DATATYPE == Datatype::UInt8,
        }
    }
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! native {
    ($($number:ty => $datatype:ident),* $(,)?) => {
        $(impl sealed::Sealed for $number {}
        impl Native for $number {
            const DATATYPE: Datatype = Datatype::$datatype;
        })*
    };
}

native! {
    i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64, u8 => UInt8, u16 => UInt16, u32 => UInt32, u64 => UInt64,
    f32 => Float32, f64 => Float64,
}

fn check_holds<T: Native>(datatype: Datatype) -> Result<()> {
    if T::holds(datatype) {
        return Ok(());
    }
    Err(Error::input(format!("a column of {datatype} does not consist of numbers of Rust's type for {}", T::DATATYPE)))
}

impl<'a> ColumnView<'a> {
    /// The caller's numbers as a column, without a copy: `int32` of `&[i32]`.
    ///
    /// ```
    /// use gridstone::engine::ColumnView;
    ///
    /// let depth = ColumnView::of(&[-10_994.0_f32, 8_848.0]);
    /// assert_eq!((depth.datatype().to_string().as_str(), depth.len()), ("float32", 2));
    /// ```
    pub fn of<T: Native>(values: &'a [T]) -> Self {
        let (values, len) = (bytemuck::cast_slice(values), values.len());
        Self { datatype: T::DATATYPE, len, values, offsets: None, validity: None }
    }

    /// The caller's numbers as a column of `datatype`: times of their ticks, vectors of their items, booleans of 0 and 1.
    ///
    /// # Errors
    /// Input: numbers of another type, or as many as make no whole cells; booleans above 1.
    ///
    /// ```
    /// use gridstone::engine::ColumnView;
    /// use gridstone::schema::Datatype;
    ///
    /// # fn main() -> gridstone::Result<()> {
    /// let days = ColumnView::of_type(Datatype::parse("datetime64[D]")?, &[19_723_i64, 19_724])?;
    /// let colours = ColumnView::of_type(Datatype::parse("uint8[3]")?, &[255_u8, 0, 0, 0, 0, 255])?;
    /// assert_eq!((days.len(), colours.len()), (2, 2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_type<T: Native>(datatype: Datatype, values: &'a [T]) -> Result<Self> {
        check_holds::<T>(datatype)?;
        Self::new(datatype, bytemuck::cast_slice(values), None, None)
    }
}

impl Column {
    /// A column with a copy of these numbers.
    pub fn of<T: Native>(values: &[T]) -> Self {
        let bytes = AlignedBuf::from_slice(bytemuck::cast_slice(values));
        Self { datatype: T::DATATYPE, len: values.len(), values: bytes, offsets: None, validity: None }
    }

    /// A nullable column of these numbers; `None` is null.
    ///
    /// ```
    /// use gridstone::engine::Column;
    ///
    /// let knots = Column::of_options(&[Some(0.1_f32), None, Some(12.5)]);
    /// assert!(knots.view().is_valid(0) && !knots.view().is_valid(1));
    /// ```
    pub fn of_options<T: Native>(values: &[Option<T>]) -> Self {
        let numbers: Vec<T> = values.iter().map(|value| value.unwrap_or_else(T::zeroed)).collect();
        let validity = values.iter().map(|value| u8::from(value.is_some())).collect();
        Self { validity: Some(validity), ..Self::of(&numbers) }
    }

    /// A column of these texts.
    ///
    /// ```
    /// use gridstone::engine::Column;
    ///
    /// let names = Column::of_texts(["Ada", "Büßer"]);
    /// assert_eq!(names.texts().unwrap(), ["Ada", "Büßer"]);
    /// ```
    pub fn of_texts(texts: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let (mut values, mut offsets) = (AlignedBuf::default(), vec![0]);
        for text in texts {
            values.extend_from_slice(text.as_ref().as_bytes());
            offsets.push(values.len() as u64);
        }
        let len = offsets.len() - 1;
        Self { datatype: Datatype::String, len, values, offsets: Some(offsets), validity: None }
    }

    /// The numbers of the column, in place. A null has a number too, which means nothing: see [`ColumnView::is_valid`].
    ///
    /// # Errors
    /// Input: the column is of another type.
    pub fn numbers<T: Native>(&self) -> Result<&[T]> {
        check_holds::<T>(self.datatype)?;
        bytemuck::try_cast_slice(&self.values)
            .map_err(|e| Error::input(format!("the values of a column of {} do not fit: {e}", self.datatype)))
    }

    /// The texts of the column; that of a null is empty.
    ///
    /// # Errors
    /// Input: the column is of another type than `string`.
    pub fn texts(&self) -> Result<Vec<&str>> {
        if self.datatype != Datatype::String {
            return Err(Error::input(format!("a column of {} has no texts; only one of string has", self.datatype)));
        }
        let text = |row| std::str::from_utf8(self.view().value(row));
        (0..self.len).map(text).collect::<std::result::Result<_, _>>().map_err(|e| {
            Error::corruption("a column of texts holds bytes that are not UTF-8; verify the array").with_source(e)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn numbers_of_each_type_come_back_and_those_of_another_are_refused() {
        macro_rules! each {
            ($($number:ty),*) => {$(
                let values = [<$number>::MIN, 0 as $number, <$number>::MAX];
                assert_eq!(Column::of(&values).numbers::<$number>().unwrap(), values);
                assert_eq!(ColumnView::of(&values).values(), Column::of(&values).view().values());
            )*};
        }
        each!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
        let refused = Column::of(&[1_i64]).numbers::<u64>().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Input);
        assert!(refused.message().contains("int64") && refused.message().contains("uint64"), "{refused}");
        assert!(Column::of(&[1_i32]).texts().is_err());
        assert!(Column::of_texts(["1"]).numbers::<u8>().is_err());
    }

    #[test]
    fn times_vectors_and_bytes_are_made_of_their_items() {
        let of = |name: &str| Datatype::parse(name).unwrap();
        assert_eq!(ColumnView::of_type(of("timedelta64[ms]"), &[i64::MIN, 7]).unwrap().len(), 2);
        assert_eq!(ColumnView::of_type(of("float32[2,3]"), &[0.5_f32; 12]).unwrap().len(), 2);
        assert_eq!(ColumnView::of_type(of("complex128"), &[0.5_f64; 4]).unwrap().len(), 2);
        assert_eq!(ColumnView::of_type(of("bytes[5]"), &[9_u8; 10]).unwrap().len(), 2);
        assert_eq!(ColumnView::of_type(of("bool"), &[1_u8, 0]).unwrap().len(), 2);
        assert!(ColumnView::of_type(of("bool"), &[2_u8]).is_err());
        assert!(ColumnView::of_type(of("float32[3]"), &[0.5_f32; 4]).is_err());
        assert!(ColumnView::of_type(of("datetime64[s]"), &[7_u64]).is_err());
        assert!(ColumnView::of_type(of("string"), b"abc").is_err());
        assert!(ColumnView::of_type(of("list[int32]"), &[1_i32]).is_err());
    }

    #[test]
    fn a_column_of_nothing_has_no_cell() {
        assert!(Column::of::<f64>(&[]).numbers::<f64>().unwrap().is_empty());
        assert!(Column::of_texts(Vec::<String>::new()).texts().unwrap().is_empty());
        assert_eq!(Column::of_options::<u8>(&[]).view().validity(), Some(&[][..]));
    }
}
