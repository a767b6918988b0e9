//! Kinds of notices, and the properties that depend on the kind alone.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// EC2 takes a spot instance back in two minutes.
    Spot,
    /// EC2 takes back an instance of an interruptible capacity reservation, or of a capacity block.
    CapacityReservation,
    /// A capacity block ends in 40 minutes. EC2 terminates its instances from 30 minutes before the end.
    CapacityBlock,
    /// A spot instance is more likely than others to be taken back.
    Rebalance,
    /// AWS will reboot, stop or retire the instance at a named time.
    Maintenance,
    MaintenanceOver,
    Stopping,
    ShuttingDown,
    Stopped,
    Terminated,
    Running,
    /// An Auto Scaling group terminates an instance and waits for its hook.
    Terminate,
    /// An Auto Scaling group puts an instance back into its warm pool and waits for its hook.
    ReturnToWarmPool,
    /// An Auto Scaling group replaces the root volume of an instance and waits for its hook.
    ReplaceRootVolume,
    /// An Auto Scaling group has launched an instance and waits for its hook.
    Launch,
    /// An Auto Scaling group has launched an instance for its warm pool and waits for its hook.
    LaunchIntoWarmPool,
    /// An Auto Scaling group has taken an instance out of its warm pool and waits for its hook.
    LaunchFromWarmPool,
    /// An Auto Scaling group has replaced the root volume of an instance and waits for its hook.
    RootVolumeReplaced,
}

/// Fate of an instance, the mildest first. A claim for a worse fate replaces a claim for a milder one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceFate {
    MayStay,
    /// The instance changes, unless AWS calls the maintenance off.
    MayBeCalledOff,
    MayReturn,
    Ends,
}

impl Kind {
    /// Every kind, as `docs/notices.md` orders them.
    pub const ALL: [Self; 18] = [
        Self::Spot,
        Self::CapacityReservation,
        Self::CapacityBlock,
        Self::Rebalance,
        Self::Maintenance,
        Self::MaintenanceOver,
        Self::Stopping,
        Self::ShuttingDown,
        Self::Stopped,
        Self::Terminated,
        Self::Running,
        Self::Terminate,
        Self::ReturnToWarmPool,
        Self::ReplaceRootVolume,
        Self::Launch,
        Self::LaunchIntoWarmPool,
        Self::LaunchFromWarmPool,
        Self::RootVolumeReplaced,
    ];

    /// Name of the kind in receipts, metrics and claims.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spot => "spot interruption",
            Self::CapacityReservation => "capacity reservation interruption",
            Self::CapacityBlock => "capacity block expiry",
            Self::Rebalance => "rebalance recommendation",
            Self::Maintenance => "scheduled maintenance",
            Self::MaintenanceOver => "maintenance over",
            Self::Stopping => "instance stopping",
            Self::ShuttingDown => "instance shutting down",
            Self::Stopped => "instance stopped",
            Self::Terminated => "instance terminated",
            Self::Running => "instance running",
            Self::Terminate => "terminate lifecycle action",
            Self::ReturnToWarmPool => "return to warm pool",
            Self::ReplaceRootVolume => "root volume replacement",
            Self::Launch => "launch lifecycle action",
            Self::LaunchIntoWarmPool => "launch into warm pool",
            Self::LaunchFromWarmPool => "launch from warm pool",
            Self::RootVolumeReplaced => "root volume replaced",
        }
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Returns `true` for a notice with a hook that reports that an instance comes back. Its node may have been drained.
    #[must_use]
    pub fn comes_back(self) -> bool {
        matches!(self, Self::LaunchFromWarmPool | Self::RootVolumeReplaced)
    }

    /// Returns `true` if AWS can call the notice off. Its node may then be given back during the drain.
    #[must_use]
    pub fn may_be_called_off(self) -> bool {
        self.instance_fate() <= InstanceFate::MayBeCalledOff
    }

    #[must_use]
    pub fn instance_fate(self) -> InstanceFate {
        match self {
            Self::Rebalance => InstanceFate::MayStay,
            Self::Maintenance => InstanceFate::MayBeCalledOff,
            // A spot instance may be stopped or hibernated.
            Self::Spot | Self::Stopping | Self::ReturnToWarmPool | Self::ReplaceRootVolume => InstanceFate::MayReturn,
            _ => InstanceFate::Ends,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_name() {
        for kind in Kind::ALL {
            assert_eq!(Kind::named(kind.as_str()), Some(kind));
        }
    }

    fn kinds(matching: impl Fn(Kind) -> bool) -> Vec<Kind> {
        Kind::ALL.into_iter().filter(|kind| matching(*kind)).collect()
    }

    #[test]
    fn fates_of_kinds_are_ordered() {
        assert_eq!(kinds(Kind::may_be_called_off), [Kind::Rebalance, Kind::Maintenance]);
        let may_return = [Kind::Spot, Kind::Stopping, Kind::ReturnToWarmPool, Kind::ReplaceRootVolume];
        assert_eq!(kinds(|kind| kind.instance_fate() == InstanceFate::MayReturn), may_return);
        let worse = [Kind::Rebalance, Kind::Maintenance, Kind::Spot, Kind::ShuttingDown].map(Kind::instance_fate);
        assert!(worse.is_sorted_by(|milder, worse| milder < worse), "{worse:?}");
        assert_eq!(Kind::ShuttingDown.instance_fate(), Kind::Terminate.instance_fate());
        assert_eq!(kinds(Kind::comes_back), [Kind::LaunchFromWarmPool, Kind::RootVolumeReplaced]);
    }
}
