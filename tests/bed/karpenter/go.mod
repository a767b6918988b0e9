// Karpenter's own module: the test bed takes the definition of NodeClaim from it, and builds nothing.
module spillway.test/karpenter

go 1.26.3

require sigs.k8s.io/karpenter v1.12.1
