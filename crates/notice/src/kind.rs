//! Kinds of notices, and the properties that depend on the kind alone.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// EC2 interrupts a spot instance in two minutes.
    Spot,
    /// EC2 reclaims an instance of an interruptible capacity reservation or of a capacity block.
    CapacityReservation,
    /// A capacity block ends in 40 minutes. EC2 begins to terminate the block's instances in 10 minutes.
    CapacityBlock,
    /// A spot instance has an elevated risk of interruption.
    Rebalance,
    /// AWS will reboot, stop or retire the instance at a known time.
    Maintenance,
    MaintenanceOver,
    Stopping,
    ShuttingDown,
    Stopped,
    Terminated,
    Running,
    /// A lifecycle hook delays the termination of an instance.
    Terminate,
    /// A lifecycle hook delays the return of an instance to the warm pool.
    ReturnToWarmPool,
    /// A lifecycle hook delays the replacement of an instance's root volume.
    ReplaceRootVolume,
    /// A lifecycle hook waits after the launch of an instance.
    Launch,
    /// A lifecycle hook waits after the launch of an instance into the warm pool.
    LaunchIntoWarmPool,
    /// A lifecycle hook waits after an instance has left the warm pool.
    LaunchFromWarmPool,
    /// A lifecycle hook waits after the root volume of an instance has been replaced.
    RootVolumeReplaced,
}

/// Fate of an instance after a notice. Each variant is worse than the variant before it. If two notices claim one node, the
/// notice with the worse fate wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceFate {
    MayStay,
    /// AWS will reboot, stop or terminate the instance, but may cancel the maintenance.
    MayBeCalledOff,
    MayReturn,
    Ends,
}

impl Kind {
    /// Every kind, in the order of `docs/notices.md`.
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

    /// Returns the name of the kind in receipts, metrics and claims.
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

    /// Returns `true` for a launch hook of an existing instance, whose node may have been drained before.
    #[must_use]
    pub fn comes_back(self) -> bool {
        matches!(self, Self::LaunchFromWarmPool | Self::RootVolumeReplaced)
    }

    /// Returns `true` if the instance may keep running: for scheduled maintenance and rebalance recommendations.
    #[must_use]
    pub fn may_stay(self) -> bool {
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
        assert_eq!(kinds(Kind::may_stay), [Kind::Rebalance, Kind::Maintenance]);
        let may_return = [Kind::Spot, Kind::Stopping, Kind::ReturnToWarmPool, Kind::ReplaceRootVolume];
        assert_eq!(kinds(|kind| kind.instance_fate() == InstanceFate::MayReturn), may_return);
        let worse = [Kind::Rebalance, Kind::Maintenance, Kind::Spot, Kind::ShuttingDown].map(Kind::instance_fate);
        assert!(worse.is_sorted_by(|milder, worse| milder < worse), "{worse:?}");
        assert_eq!(Kind::ShuttingDown.instance_fate(), Kind::Terminate.instance_fate());
        assert_eq!(kinds(Kind::comes_back), [Kind::LaunchFromWarmPool, Kind::RootVolumeReplaced]);
    }
}
