//! Facts about network interfaces, their addresses, and the default routes.
//!
//! Nothing is sent over the network: the kernel is queried through netlink and /proc.

pub(super) mod netlink;
mod routes;

use std::{net::IpAddr, sync::Arc};

use ccm_expr::Value;

use self::netlink::{Address, Link, Question};
use super::{
    lazy::{Lazy, map},
    machine::Machine,
};

pub(super) fn section(machine: &Arc<Machine>) -> Value {
    Lazy::of(
        machine,
        &[
            ("interfaces", |machine| machine.network().interfaces()),
            ("addresses", |machine| machine.network().addresses()),
            ("default_ipv4", |machine| shown(machine.network().default_ipv4())),
            ("default_ipv6", |machine| shown(machine.network().default_ipv6())),
            ("primaryIP", |machine| shown(machine.network().primary())),
        ],
    )
}

/// Network configuration of the kernel.
pub(super) struct Network {
    links: Vec<Link>,
    addresses: Vec<Address>,
    /// Interfaces of the default routes.
    way_out_ipv4: Option<String>,
    way_out_ipv6: Option<String>,
}

impl Network {
    pub(super) fn of(machine: &Machine) -> Self {
        let routes = |path| machine.text(path).unwrap_or_default();
        let mut links = netlink::links(&machine.netlink(Question::Links));
        links.sort_by_key(|link| link.index);
        Self {
            links,
            addresses: netlink::addresses(&machine.netlink(Question::Addresses)),
            way_out_ipv4: routes::default_ipv4(&routes("proc/net/route")),
            way_out_ipv6: routes::default_ipv6(&routes("proc/net/ipv6_route")),
        }
    }

    fn interfaces(&self) -> Value {
        let described = self.links.iter().map(|link| {
            let addresses = self.addresses.iter().filter(|address| address.link == link.index);
            let addresses = addresses
                .map(|address| map([("addr", format!("{}/{}", address.ip, address.prefix_length).into())]));
            map([
                ("index", i64::from(link.index).into()),
                ("name", link.name.as_str().into()),
                ("mtu", i64::from(link.mtu).into()),
                ("hardwareAddr", link.hardware_address.as_str().into()),
                ("flags", flags(link.flags).map(Value::from).collect()),
                ("addrs", addresses.collect()),
            ])
        });
        described.collect()
    }

    /// Returns the addresses that other machines can reach.
    fn addresses(&self) -> Value {
        let described = self.reachable().map(|(link, address)| {
            let way_out = if address.ip.is_ipv4() { &self.way_out_ipv4 } else { &self.way_out_ipv6 };
            map([
                ("interface", link.name.as_str().into()),
                ("address", address.ip.to_string().into()),
                ("prefix", i64::from(address.prefix_length).into()),
                ("ipv4", address.ip.is_ipv4().into()),
                ("default", (way_out.as_ref() == Some(&link.name)).into()),
            ])
        });
        described.collect()
    }

    fn default_ipv4(&self) -> Option<IpAddr> {
        self.first_on(self.way_out_ipv4.as_deref()?, IpAddr::is_ipv4)
    }

    fn default_ipv6(&self) -> Option<IpAddr> {
        self.first_on(self.way_out_ipv6.as_deref()?, IpAddr::is_ipv6)
    }

    /// Returns the address that most likely identifies the machine to others.
    fn primary(&self) -> Option<IpAddr> {
        let any = || Some(self.reachable().next()?.1.ip);
        self.default_ipv4().or_else(|| self.default_ipv6()).or_else(any)
    }

    /// Returns the first source address of an interface.
    fn first_on(&self, name: &str, is_of_family: fn(&IpAddr) -> bool) -> Option<IpAddr> {
        let mut there = self
            .reachable()
            .filter(|(link, address)| link.name == name && is_of_family(&address.ip))
            .peekable();
        let first = there.peek().map(|(_, address)| address.ip);
        there.find(|(_, address)| address.is_preferred).map(|(_, address)| address.ip).or(first)
    }

    fn reachable(&self) -> impl Iterator<Item = (&Link, &Address)> {
        self.links
            .iter()
            .flat_map(|link| self.addresses.iter().map(move |address| (link, address)))
            .filter(|(link, address)| address.link == link.index && leads_outside(address.ip))
    }
}

/// A network interface of this machine.
pub(crate) struct Interface {
    pub(crate) mtu: u32,
    /// Addresses with their prefix lengths: `192.0.2.1/24`.
    pub(crate) addresses: Vec<String>,
}

/// Queries the kernel for an interface; `None` if it does not exist.
pub(crate) fn interface(name: &str) -> rustix::io::Result<Option<Interface>> {
    let links = netlink::links(&netlink::ask(Question::Links)?);
    let Some(link) = links.into_iter().find(|link| link.name == name) else { return Ok(None) };
    let addresses = netlink::addresses(&netlink::ask(Question::Addresses)?);
    let own = addresses.into_iter().filter(|address| address.link == link.index);
    let addresses = own.map(|address| format!("{}/{}", address.ip, address.prefix_length)).collect();
    Ok(Some(Interface { mtu: link.mtu, addresses }))
}

fn leads_outside(ip: IpAddr) -> bool {
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !(is_link_local || ip.is_loopback() || ip.is_multicast() || ip.is_unspecified())
}

/// Returns null, not an empty string, for a missing address, so that a template that uses it fails.
fn shown(address: Option<IpAddr>) -> Value {
    address.map_or(Value::Null, |address| address.to_string().into())
}

fn flags(bits: u32) -> impl Iterator<Item = &'static str> {
    const NAMES: [(u32, &str); 6] = [
        (0x1, "up"),
        (0x2, "broadcast"),
        (0x8, "loopback"),
        (0x10, "pointtopoint"),
        (0x1000, "multicast"),
        (0x40, "running"),
    ];
    NAMES.into_iter().filter(move |(bit, _)| bits & bit != 0).map(|(_, name)| name)
}
