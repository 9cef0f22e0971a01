package maas

// AllocationKeyPrefix starts the agent_name of every allocation made for a MaasMachine.
const AllocationKeyPrefix = "hypershift-maasmachine-"

// Workload annotations of an allocation made for a MaasMachine. MAAS clears them when the machine is released.
const (
	AnnotationMachineUID = "hypershift-machine-uid"
	AnnotationMachine    = "hypershift-machine"
	AnnotationNamespace  = "hypershift-namespace"
	AnnotationCluster    = "hypershift-cluster"
	AnnotationClusterUID = "hypershift-cluster-uid"
)

// AllocationKey is the agent_name of the allocation made for the MaasMachine with a UID. MAAS stores it in the transaction
// that allocates, so a process that died before it could write down what it got finds it again.
func AllocationKey(uid string) string { return AllocationKeyPrefix + uid }
