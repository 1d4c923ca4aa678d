//! What ranks, and what they do, are called in messages.

use hyperslab_layout::Object;
use hyperslab_plan::Action;
use hyperslab_world::Root;

/// The ranks of a communicator, of which the last may only serve the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    size: u32,
    /// Numbers of the servers in the communicator of the user, who knows them by these.
    servers: Vec<u32>,
}

impl Names {
    pub(crate) fn new(size: u32, servers: Vec<u32>) -> Names {
        Names { size, servers }
    }

    /// Number of the ranks that ask.
    pub(crate) fn clients(&self) -> u32 {
        self.size - self.servers.len() as u32
    }

    /// The ranks that only serve.
    pub(crate) fn servers(&self) -> std::ops::Range<u32> {
        self.clients()..self.size
    }

    /// Ranks as a list.
    pub(crate) fn list(&self, ranks: &[u32]) -> String {
        let (clients, servers): (Vec<u32>, Vec<u32>) = ranks.iter().partition(|&&rank| rank < self.clients());
        let server = |&rank: &u32| {
            let number = rank - self.clients();
            format!("server {number} (rank {} of the communicator)", self.servers[number as usize])
        };
        let clients = (!clients.is_empty()).then(|| named(&clients));
        clients.into_iter().chain(servers.iter().map(server)).collect::<Vec<_>>().join(", ")
    }
}

/// An action in words, with objects below these roots.
pub(crate) fn describe(action: &Action, roots: &[Root]) -> String {
    let full = |object: &Object| Root::full_of(roots, object);
    match action {
        Action::Send { to, parts } => format!("rank {to} to take {} piece(s)", parts.len()),
        Action::Recv { from, parts } => format!("{} piece(s) from rank {from}", parts.len()),
        Action::Copy { region, .. } => format!("copying {} elements", region.elements()),
        Action::Fill { region, .. } => format!("filling {} elements", region.elements()),
        Action::Read { object, region, .. } => {
            format!("reading {} elements of object '{}'", region.elements(), full(object))
        }
        Action::Write { object, region, .. } => {
            format!("writing {} elements of object '{}'", region.elements(), full(object))
        }
        Action::Get { object, .. } => format!("reading object '{}'", full(object)),
        Action::Decode { object, .. } => format!("decoding object '{}'", full(object)),
        Action::Encode { region, .. } => format!("encoding {} elements", region.elements()),
        Action::Put { object, .. } | Action::Make { object, .. } => format!("writing object '{}'", full(object)),
        Action::Sync { .. } => "writing to reach the disk (sync)".into(),
    }
}

/// Ranks by their numbers.
pub(crate) fn named(ranks: &[u32]) -> String {
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, list(ranks))
}

/// Numbers as a list.
pub(crate) fn list(ranks: &[u32]) -> String {
    ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_called_by_the_numbers_that_the_user_knows() {
        let names = Names::new(6, vec![2, 5]);
        assert_eq!((names.clients(), names.servers()), (4, 4..6));
        assert_eq!(names.list(&[0, 3]), "ranks 0, 3");
        let both = "rank 1, server 0 (rank 2 of the communicator), server 1 (rank 5 of the communicator)";
        assert_eq!(names.list(&[1, 4, 5]), both);
        assert_eq!(Names::new(3, Vec::new()).list(&[2]), "rank 2");
    }
}
