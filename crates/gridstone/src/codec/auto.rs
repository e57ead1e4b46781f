//! x
use super::Pipeline;
use crate::base::Element;
/// x
pub fn choose(_sample: &[u8], _element: Element) -> Pipeline {
    Pipeline::none()
}
