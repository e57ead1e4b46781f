//! Simplifies nodes without changing the rows that they select: joins sets on one column, removes constants.

use super::bind::{Field, Node};
use super::values::Values;

/// The rows whose value is in `values`.
pub(super) fn leaf(field: Field, values: Values) -> Node {
    let nan = field.may_be_nan();
    if values.is_empty(nan) {
        Node::Constant(false)
    } else if !values.is_full(field.datatype, nan) {
        Node::In(field, values)
    } else if field.nullable {
        Node::Valid(field)
    } else {
        Node::Constant(true)
    }
}

/// All of `parts` (`all`), or at least one of them.
pub(super) fn join(parts: Vec<Node>, all: bool) -> Node {
    let mut kept: Vec<Node> = Vec::with_capacity(parts.len());
    for part in parts {
        let inner = match part {
            Node::And(inner) if all => inner,
            Node::Or(inner) if !all => inner,
            other => vec![other],
        };
        for node in inner {
            match node {
                Node::Constant(value) if value == all => {}
                Node::Constant(value) => return Node::Constant(value),
                node => add(&mut kept, node, all),
            }
        }
    }
    if kept.contains(&Node::Constant(!all)) {
        return Node::Constant(!all);
    }
    kept.retain(|node| *node != Node::Constant(all));
    // What must be computed is asked last, and not at all if the rest decides.
    kept.sort_by_key(|node| matches!(node, Node::Computed(_)));
    match (kept.len(), kept.pop()) {
        (_, None) => Node::Constant(all),
        (1, Some(only)) => only,
        (_, Some(last)) => {
            kept.push(last);
            if all { Node::And(kept) } else { Node::Or(kept) }
        }
    }
}

/// How many nodes are searched for one on the same column, and how many intervals that one may have: a chain of many
/// thousand parts must not take quadratic time.
const LOOKED_AT: usize = 64;

/// Joins `node` with a set on the same column, if there is one, else adds it.
fn add(kept: &mut Vec<Node>, node: Node, all: bool) {
    let Node::In(field, values) = &node else { return kept.push(node) };
    let same = kept
        .iter_mut()
        .take(LOOKED_AT)
        .find(|k| matches!(k, Node::In(other, set) if other == field && set.len() < LOOKED_AT));
    match same {
        Some(slot) => {
            if let Node::In(_, other) = slot {
                let joined = if all { other.intersect(values) } else { other.union(values) };
                *slot = leaf(*field, joined);
            }
        }
        None => kept.push(node),
    }
}
