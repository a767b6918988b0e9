//! The kinds of notice, and what can be said of each without knowing the instance.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// EC2 takes a spot instance back in two minutes.
    Spot,
    /// EC2 takes back an instance of an interruptible capacity reservation, or of a capacity block.
    CapacityReservation,
    /// A capacity block ends in 40 minutes, its instances in 30.
    CapacityBlock,
    /// EC2 says that a spot instance is more likely than others to be taken back.
    Rebalance,
    /// AWS will reboot, stop or retire the instance at a time that it names.
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

/// What becomes of an instance, the mildest first: a claim on its node gives way to one for worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceFate {
    /// Perhaps nothing happens to it.
    MayStay,
    /// Something will, unless AWS calls it off.
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

    /// The kind as receipts, metrics and the claim on a node name it.
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

    /// Whether a node comes back that may have been taken out before.
    #[must_use]
    pub fn comes_back(self) -> bool {
        matches!(self, Self::LaunchFromWarmPool | Self::RootVolumeReplaced)
    }

    /// Whether the instance may stay as it is after all, and its node be given back in the midst of its drain.
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
    fn each_kind_has_a_name_of_its_own() {
        for kind in Kind::ALL {
            assert_eq!(Kind::named(kind.as_str()), Some(kind));
        }
    }

    fn those(are: impl Fn(Kind) -> bool) -> Vec<Kind> {
        Kind::ALL.into_iter().filter(|kind| are(*kind)).collect()
    }

    #[test]
    fn a_drain_is_given_up_only_for_what_aws_may_call_off_and_maintenance_is_surer_than_a_recommendation() {
        assert_eq!(those(Kind::may_be_called_off), [Kind::Rebalance, Kind::Maintenance]);
        assert!(Kind::Rebalance.instance_fate() < Kind::Maintenance.instance_fate());
    }

    #[test]
    fn a_notice_that_the_instance_ends_outranks_one_that_it_stops() {
        let may_return = [Kind::Spot, Kind::Stopping, Kind::ReturnToWarmPool, Kind::ReplaceRootVolume];
        assert_eq!(those(|kind| kind.instance_fate() == InstanceFate::MayReturn), may_return);
        for stops in may_return {
            assert!(stops.instance_fate() < Kind::ShuttingDown.instance_fate(), "{stops:?}");
            assert!(stops.instance_fate() < Kind::Terminate.instance_fate(), "{stops:?}");
        }
    }

    #[test]
    fn a_node_comes_back_from_a_warm_pool_and_with_another_root_volume() {
        assert_eq!(those(Kind::comes_back), [Kind::LaunchFromWarmPool, Kind::RootVolumeReplaced]);
    }
}
