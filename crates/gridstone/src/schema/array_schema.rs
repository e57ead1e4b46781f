//! The schema of an array. A `Schema` value is always valid, unless a newer release wrote it so that this one
//! cannot read it.

use super::extra::Extra;
use super::{Attribute, Coordinate, Datatype, Dimension, Extent, Filters, Frame, KeyRange, Labels, Order, Subarray};
use crate::base::{Error, PRINTABLE, Result, is_unprintable, limits};
use std::collections::HashSet;
use std::sync::Arc;

/// The options of a schema besides dimensions and attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaOptions {
    /// Whether only non-empty cells exist.
    pub sparse: bool,
    /// Cells per data tile of a sparse array.
    pub capacity: u64,
    /// The order of the space tiles.
    pub tile_order: Order,
    /// The order of the cells in a tile.
    pub cell_order: Order,
    /// Whether a sparse array may have several cells at one position.
    pub duplicates: bool,
    /// The filters of the coordinates.
    pub coord_filters: Filters,
}

impl Default for SchemaOptions {
    fn default() -> Self {
        Self {
            sparse: false,
            capacity: 10_000,
            tile_order: Order::Row,
            cell_order: Order::Row,
            duplicates: false,
            coord_filters: Filters::Auto,
        }
    }
}

/// The schema of an array: dimensions, attributes and how cells are laid out.
///
/// ```
/// use gridstone::{Attribute, Datatype, Dimension, ErrorKind, Order, Schema, SchemaOptions};
///
/// # fn main() -> gridstone::Result<()> {
/// // A year of days in tiles of 30, on a grid; a null where nothing was measured.
/// let dims = vec![
///     Dimension::new("day", Datatype::parse("datetime64[D]")?, "20454", "20818", Some("30"))?,
///     Dimension::new("lat", Datatype::Int32, "-50", "49", Some("50"))?,
/// ];
/// let attrs = vec![
///     Attribute::new("temperature", Datatype::Float32, true, None, "auto")?,
///     Attribute::new("ice", Datatype::UInt8, false, Some("255"), "rle,zstd:3")?,
/// ];
/// let schema = Schema::new(dims, attrs, SchemaOptions::default())?;
/// assert_eq!((schema.ndim(), schema.sparse(), schema.attr("ice")?.1.fill()), (2, false, &[255][..]));
///
/// // A value is always valid: what contradicts itself is refused, in words.
/// let dim = Dimension::new("x", Datatype::Float64, "0", "1", None)?;
/// let v = Attribute::new("v", Datatype::Int8, false, None, "auto")?;
/// let refused = Schema::new(vec![dim], vec![v], SchemaOptions { cell_order: Order::Hilbert, ..Default::default() });
/// assert_eq!(refused.unwrap_err().kind(), ErrorKind::Schema);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// The axes.
    dims: Vec<Dimension>,
    /// In ascending order of their permanent numbers.
    attrs: Vec<Attribute>,
    /// The permanent number of the next attribute: numbers of dropped ones are never reused.
    next_id: u32,
    options: SchemaOptions,
    /// The frame of the Hilbert curve, if it is given; else it follows from the domain.
    frame: Option<Frame>,
    /// What newer releases say in it.
    extra: Option<Arc<Extra>>,
    /// Whether it is of an array of no dimension: its one axis has one coordinate, and no user sees it.
    scalar: bool,
}

/// The name of the one axis of an array of no dimension.
pub(super) const SCALAR_AXIS: &str = "@";

impl Schema {
    /// The same schema without duplicates: for merging cells so that each position has one.
    #[must_use]
    pub fn with_one_cell_each(&self) -> Self {
        Self { options: SchemaOptions { duplicates: false, ..self.options.clone() }, ..self.clone() }
    }

    /// Makes a valid schema, or returns a Schema error that names the contradiction. Attributes are numbered by their
    /// positions.
    pub fn new(dims: Vec<Dimension>, attrs: Vec<Attribute>, options: SchemaOptions) -> Result<Self> {
        let attrs: Vec<Attribute> = attrs.into_iter().zip(0u32..).map(|(a, id)| a.with_id(id)).collect();
        let next_id = attrs.len() as u32;
        Self::numbered(dims, attrs, next_id, options)
    }

    /// Like [`Schema::new`], for attributes that have their numbers.
    pub(super) fn numbered(
        dims: Vec<Dimension>,
        attrs: Vec<Attribute>,
        next_id: u32,
        options: SchemaOptions,
    ) -> Result<Self> {
        let schema = Self { dims, attrs, next_id, options, frame: None, extra: None, scalar: false };
        schema.check_numbers()?;
        schema.check_names()?;
        schema.check_texts()?;
        schema.check_options()?;
        schema.check_labels()?;
        if !schema.options.sparse {
            schema.check_dense()?;
        }
        Ok(schema)
    }

    /// A schema that this release cannot read, with its dimensions.
    pub(super) fn unreadable(dims: Vec<Dimension>, extra: Extra) -> Self {
        let options = SchemaOptions { sparse: true, ..SchemaOptions::default() };
        Self { dims, attrs: Vec::new(), next_id: 0, options, frame: None, extra: Some(Arc::new(extra)), scalar: false }
    }

    pub(super) fn extra(&self) -> Option<&Extra> {
        self.extra.as_deref()
    }

    /// The same schema with what newer releases say in `extra`, and of its attributes what is said of those that it has.
    #[must_use]
    pub(super) fn with_extra(self, mut extra: Extra) -> Self {
        extra.attrs.retain(|id, _| self.attr_by_id(*id).is_some());
        Self { extra: (extra != Extra::default()).then(|| Arc::new(extra)), ..self }
    }

    /// The same schema over the domain that reaches as far as its own and `domain`. Tiles and the frame of the Hilbert
    /// curve stay.
    #[must_use]
    pub fn reaching(&self, domain: &Subarray) -> Self {
        let frame = self.is_on_curve().then(|| self.frame());
        let joined = |(dim, range): (&Dimension, &KeyRange)| dim.reaching(*range);
        let dims = self.dims.iter().zip(domain.ranges()).map(joined).collect();
        Self { dims, frame, ..self.clone() }
    }

    fn is_on_curve(&self) -> bool {
        self.options.cell_order == Order::Hilbert
    }

    /// The frame of the Hilbert curve of an array with one: the given one, or one place for each key of the domain.
    pub fn frame(&self) -> Frame {
        self.frame.clone().unwrap_or_else(|| Frame::of_keys(&self.dims))
    }

    /// The frame, unless it is the one that follows from the domain.
    pub(super) fn given_frame(&self) -> Option<&Frame> {
        self.frame.as_ref().filter(|frame| self.needs_frame() || **frame != Frame::of_keys(&self.dims))
    }

    /// Whether a Hilbert curve needs a frame that is given: a dimension without tiles has no domain, or one without an end.
    pub(super) fn needs_frame(&self) -> bool {
        let is_endless = |d: &Dimension| d.range().is_empty() || d.open() != [false; 2];
        self.is_on_curve() && self.dims.iter().any(|d| is_endless(d) && !matches!(d.extent(), Extent::Cells(_)))
    }

    /// The schema of an array of no dimension: one cell.
    ///
    /// # Errors
    /// Those of [`Schema::new`]; Schema if the options are those of a sparse array.
    pub fn of_scalar(attrs: Vec<Attribute>, options: SchemaOptions) -> Result<Self> {
        let axis = Dimension::new(SCALAR_AXIS, Datatype::UInt8, "0", "0", None)?;
        Self::new(vec![axis], attrs, options)?.into_scalar()
    }

    /// The same schema as that of an array of no dimension.
    pub(super) fn into_scalar(self) -> Result<Self> {
        let axis = Dimension::new(SCALAR_AXIS, Datatype::UInt8, "0", "0", None)?;
        if self.sparse() || self.dims != [axis] {
            return Err(Error::schema(format!(
                "an array of no dimension is dense, and has one axis {SCALAR_AXIS:?} of type uint8 from 0 to 0"
            )));
        }
        Ok(Self { scalar: true, ..self })
    }

    /// Whether it is of an array of no dimension. The axis that it has nevertheless has one coordinate, 0.
    pub fn is_scalar(&self) -> bool {
        self.scalar
    }

    /// The same schema with the labels that `relabelled` gives for those of a dimension. Labels for which it gives none are left out.
    #[must_use]
    pub fn relabelled(&self, relabelled: impl Fn(&Labels) -> Option<Labels>) -> Self {
        let with = |dim: &Dimension| match dim.labels() {
            Some(labels) => dim.with_labels(relabelled(labels)),
            None => dim.clone(),
        };
        Self { dims: self.dims.iter().map(with).collect(), ..self.clone() }
    }

    /// The same schema with this frame of its Hilbert curve.
    #[must_use]
    pub(super) fn framed(self, frame: Option<Frame>) -> Self {
        Self { frame: frame.filter(|_| self.is_on_curve()), ..self }
    }

    /// The same schema for a new array: its attributes are numbered by their positions, and a Hilbert curve that has no frame
    /// gets one. What newer releases say of another array is left out.
    #[must_use]
    pub fn of_new_array(self) -> Self {
        let follows = self.is_on_curve() && !self.needs_frame();
        let attrs: Vec<Attribute> = self.attrs.into_iter().zip(0u32..).map(|(a, id)| a.with_id(id)).collect();
        let frame = self.frame.or_else(|| follows.then(|| Frame::of_values(&self.dims)));
        Self { next_id: attrs.len() as u32, attrs, frame, extra: None, ..self }
    }

    fn check_numbers(&self) -> Result<()> {
        let numbers = || self.attrs.iter().map(Attribute::id).chain([self.next_id]);
        if numbers().is_sorted_by(|a, b| a < b) {
            return Ok(());
        }
        let found: Vec<String> = numbers().map(|id| id.to_string()).collect();
        Err(Error::schema(format!(
            "the numbers of the attributes must ascend, and that of the next one be greater; found {}",
            found.join(", ")
        )))
    }

    fn check_names(&self) -> Result<()> {
        let (nd, na) = (self.coordinates().count(), self.attrs.len());
        if nd == 0 || nd > limits::DIMENSIONS_MAX {
            return Err(Error::schema(format!("an array has 1 to {} dimensions, not {nd}", limits::DIMENSIONS_MAX)));
        }
        if na == 0 || na > limits::ATTRIBUTES_MAX {
            return Err(Error::schema(format!("an array has 1 to {} attributes, not {na}", limits::ATTRIBUTES_MAX)));
        }
        let mut seen = HashSet::new();
        for name in self.names() {
            if name.is_empty() || name.len() > limits::NAME_BYTES_MAX {
                return Err(Error::schema(format!(
                    "a name has 1 to {} bytes of UTF-8, found {name:?}",
                    limits::NAME_BYTES_MAX
                )));
            }
            if !seen.insert(name) {
                return Err(Error::schema(format!(
                    "the name {name:?} is used twice; every dimension and attribute needs its own"
                )));
            }
        }
        Ok(())
    }

    /// A Schema error if a name that `before` does not have contains characters that act on a terminal. Existing
    /// schemas may have such names.
    pub fn check_new_names(&self, before: Option<&Self>) -> Result<()> {
        let known: HashSet<&str> = before.into_iter().flat_map(Self::names).collect();
        match self.names().find(|name| name.contains(is_unprintable) && !known.contains(name)) {
            Some(name) => Err(Error::schema(format!("{name:?} cannot name a dimension or attribute: {PRINTABLE}"))),
            None => Ok(()),
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.coordinates().map(|c| c.name()).chain(self.attrs.iter().map(Attribute::name))
    }

    fn check_texts(&self) -> Result<()> {
        self.coordinates().try_for_each(|coordinate| coordinate.check_words())?;
        let Some(text) = self.coordinates().find(|c| c.max_bytes().is_some()) else { return Ok(()) };
        let wrong = |why: String| Err(Error::schema(format!("dimension {:?} is text: {why}", text.name())));
        if !self.options.sparse {
            return wrong("a dense array's dimensions are integers or datetimes; use sparse=True".to_owned());
        }
        if self.options.cell_order == Order::Hilbert {
            return wrong(
                "the Hilbert curve goes along numbers, give cell_order=\"row\" or \"col\", or an order of your own as an \
                 integer dimension"
                    .to_owned(),
            );
        }
        if self.dims.len() > limits::AXES_MAX {
            return wrong(format!(
                "the dimensions take {} axes, one per number and one per eight bytes of text; at most {} are allowed: give \
                 smaller max_bytes",
                self.dims.len(),
                limits::AXES_MAX
            ));
        }
        Ok(())
    }

    fn check_labels(&self) -> Result<()> {
        match self.dims.iter().find(|dim| self.sparse() && dim.labels().is_some()) {
            Some(dim) => Err(Error::schema(format!(
                "dimension {:?}: labels are of the positions of dense arrays; the cells of a sparse one have coordinates",
                dim.name()
            ))),
            None => Ok(()),
        }
    }

    fn check_options(&self) -> Result<()> {
        let o = &self.options;
        if o.capacity == 0 || o.capacity > limits::CAPACITY_MAX {
            return Err(Error::schema(format!(
                "the capacity is 1 to {} cells, not {}",
                limits::CAPACITY_MAX,
                o.capacity
            )));
        }
        if o.tile_order == Order::Hilbert || (o.cell_order == Order::Hilbert && !o.sparse) {
            return Err(Error::schema(
                "the Hilbert curve orders the cells of sparse arrays: give \"row\" or \"col\" for tiles and for dense arrays",
            ));
        }
        if o.duplicates && !o.sparse {
            return Err(Error::schema("a dense array has one cell at each place: duplicates=True needs sparse=True"));
        }
        if let Filters::Named(name) = &o.coord_filters {
            for dim in &self.dims {
                let pipeline = crate::codec::Pipeline::parse(name)?;
                pipeline
                    .check(dim.datatype().element())
                    .map_err(|e| e.context(format!("dimension {:?}", dim.name())))?;
            }
        }
        Ok(())
    }

    /// A Schema error if a tile has more cells than one may have, as it may after the domain grew along a dimension
    /// without tiles.
    pub fn check_limits(&self) -> Result<()> {
        if self.scalar && self.domain().cells() != 1 {
            return Err(Error::schema("an array of no dimension has one cell, and its domain does not grow"));
        }
        if self.options.sparse { Ok(()) } else { self.check_dense() }
    }

    fn check_dense(&self) -> Result<()> {
        let mut cells = 1u128;
        for dim in &self.dims {
            if !dim.datatype().can_be_dimension(false) {
                return Err(Error::schema(format!(
                    "dimension {:?}: a dense array's dimensions are integers or datetimes, not {}; use sparse=True",
                    dim.name(),
                    dim.datatype()
                )));
            }
            if dim.open() != [false; 2] && dim.extent() == Extent::Whole {
                return Err(Error::schema(format!(
                    "dimension {:?}: an end of its domain is open, so a dense array needs a tile extent",
                    dim.name()
                )));
            }
            let extent = if let Extent::Cells(n) = dim.extent() { u128::from(n) } else { dim.range().count() };
            cells = cells.saturating_mul(extent);
        }
        if cells > u128::from(limits::TILE_CELLS_MAX) {
            return Err(Error::schema(format!(
                "a space tile would hold {cells} cells, at most {} are allowed; give smaller tile extents",
                limits::TILE_CELLS_MAX
            )));
        }
        Ok(())
    }

    /// The axes: one per dimension, and for a text dimension one per word. All code that stores cells uses these.
    pub fn dims(&self) -> &[Dimension] {
        &self.dims
    }

    /// The dimensions as users know them, each with its axes; none of an array of no dimension.
    pub fn coordinates(&self) -> impl Iterator<Item = Coordinate<'_>> + Clone {
        Coordinate::all(if self.scalar { &[] } else { &self.dims })
    }

    /// The axes from the slowest to the fastest: the dimensions in `order`, the words of each text from the first on.
    pub fn slowest_first(&self, order: Order) -> Vec<usize> {
        let mut dims: Vec<_> = self.coordinates().map(|dim| dim.axes()).collect();
        if order == Order::Col {
            dims.reverse();
        }
        dims.into_iter().flatten().collect()
    }

    /// The attributes.
    pub fn attrs(&self) -> &[Attribute] {
        &self.attrs
    }

    /// The permanent number that the next attribute to be added gets.
    pub fn next_id(&self) -> u32 {
        self.next_id
    }

    /// The other options.
    pub fn options(&self) -> &SchemaOptions {
        &self.options
    }

    /// Whether only non-empty cells exist.
    pub fn sparse(&self) -> bool {
        self.options.sparse
    }

    /// The number of axes.
    pub fn ndim(&self) -> usize {
        self.dims.len()
    }

    /// The whole domain.
    pub fn domain(&self) -> Subarray {
        Subarray::domain(&self.dims)
    }

    /// Whether the domain is empty along some dimension, so that there is no cell.
    pub fn is_without_cells(&self) -> bool {
        self.dims.iter().any(|dim| dim.range().is_empty())
    }

    /// How far a write may make the domain reach: anywhere if it `grows` on purpose, else beyond the ends that are open.
    pub fn reachable(&self, grows: bool) -> Subarray {
        match grows {
            true => self.widest(),
            false => Subarray::new(self.dims.iter().map(Dimension::free_range).collect()),
        }
    }

    /// All coordinates that the types of the dimensions have.
    pub fn widest(&self) -> Subarray {
        let range = |dim: &Dimension| match dim.word() {
            Some(_) => dim.range(),
            None => super::key::range_of(dim.datatype()),
        };
        Subarray::new(self.dims.iter().map(range).collect())
    }

    /// The attribute of this name and its index; a NotFound error lists the existing names.
    pub fn attr(&self, name: &str) -> Result<(usize, &Attribute)> {
        self.attrs.iter().enumerate().find(|(_, a)| a.name() == name).ok_or_else(|| {
            let names: Vec<&str> = self.attrs.iter().map(Attribute::name).collect();
            Error::input(format!("no attribute {name:?}; there are {}", names.join(", ")))
        })
    }

    /// The attribute with this permanent number.
    pub fn attr_by_id(&self, id: u32) -> Option<&Attribute> {
        self.attrs.iter().find(|a| a.id() == id)
    }

    /// Low and high of every dimension as text. For a text dimension these are texts such that no cell of the box lies
    /// beyond them.
    pub fn ends(&self, sub: &Subarray) -> Vec<(String, String)> {
        self.coordinates().map(|dim| dim.ends(sub.ranges())).collect()
    }

    /// A box as a user would write it.
    pub fn describe(&self, sub: &Subarray) -> String {
        let part = |coordinate: Coordinate<'_>| {
            let (lo, hi) = coordinate.shown_ends(sub.ranges());
            match coordinate.max_bytes() {
                Some(_) => format!("{} from {lo:?} to {hi:?}", coordinate.name()),
                None => format!("{} from {lo} to {hi}", coordinate.name()),
            }
        };
        format!("({})", self.coordinates().map(part).collect::<Vec<_>>().join(", "))
    }

    /// A cell as a user would write it; `key` returns its key on each axis.
    pub fn describe_cell(&self, key: impl Fn(usize) -> u64) -> String {
        let part = |coordinate: Coordinate<'_>| match coordinate.max_bytes() {
            Some(_) => format!("{}={:?}", coordinate.name(), coordinate.text(&key)),
            None => format!("{}={}", coordinate.name(), coordinate.shown(&key)),
        };
        self.coordinates().map(part).collect::<Vec<_>>().join(", ")
    }

    /// A Bounds error unless `sub` has the right number of dimensions.
    fn check_axes(&self, sub: &Subarray) -> Result<()> {
        if sub.ndim() == self.ndim() {
            return Ok(());
        }
        Err(Error::bounds(format!("a box of {} dimensions was given, the array has {}", sub.ndim(), self.ndim())))
    }

    /// A Bounds error unless `sub` is a box of coordinates that the dimensions could have, in the domain or not.
    pub fn check_possible(&self, sub: &Subarray) -> Result<()> {
        self.check_axes(sub)?;
        let impossible = |(range, dim): (&KeyRange, &Dimension)| {
            let all = super::key::range_of(dim.datatype());
            !(all.contains(range.lo) && all.contains(range.hi))
        };
        match sub.ranges().iter().zip(&self.dims).any(impossible) {
            true => Err(Error::bounds("a box reaches beyond what the types of the dimensions can say")),
            false => Ok(()),
        }
    }

    /// A Bounds error that names both unless `sub` has the right number of dimensions and lies in the domain, as a box without
    /// coordinates along a dimension does.
    pub fn check_inside(&self, sub: &Subarray) -> Result<()> {
        self.check_axes(sub)?;
        let parts = || self.dims.iter().zip(sub.ranges());
        if let Some((dim, _)) = parts().find(|(dim, range)| dim.range().is_empty() && !range.is_empty()) {
            return Err(Error::bounds(format!(
                "the array has no coordinate along dimension {:?} yet, so no box is inside of it; write or append to it first",
                dim.name()
            )));
        }
        let is_inside =
            |(d, r): (&Dimension, &KeyRange)| r.is_empty() || (d.range().contains(r.lo) && d.range().contains(r.hi));
        if !parts().all(is_inside) {
            return Err(Error::bounds(format!(
                "the box {} is not inside the domain {}",
                self.describe(sub),
                self.describe(&self.domain())
            )));
        }
        Ok(())
    }
}
