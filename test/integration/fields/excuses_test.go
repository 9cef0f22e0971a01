// SPDX-License-Identifier: Apache-2.0

package fields

// excuse gives the reason why a field that no code reads is acceptable.
type excuse struct {
	kinds []string
	// path is the path of the field, or of a field that contains it.
	path string
	// where is the package that handles it.
	where string
	// says is the package's message to a user who sets the field, if it rejects or reports it.
	says string
	// field is the key in source.uses of a struct that the package reads as one value; empty if it does not.
	field string
	// because is the reason in all other cases.
	because string
}

func (e excuse) why() string {
	switch {
	case e.says != "":
		return "refused or reported: “" + e.says + "”"
	case e.field != "":
		return "used whole by " + e.where + ", without a look at it"
	}
	return e.because
}

var (
	clusterKind = []string{"HostedCluster"}
	poolKind    = []string{"NodePool"}
	machineKind = []string{"MaasMachine"}
	templates   = []string{"MaasMachineTemplate"}
)

var excuses = append([]excuse{
	{kinds: clusterKind, path: "etcd.managed.storage.type", because: "it has one value"},
	{kinds: poolKind, path: "platform.kubevirt.rootVolume.type", because: "it has one value"},
	{kinds: []string{"MaasCluster"}, path: "lxdConfig", where: "cluster-api-provider-maas/internal/cluster", says: "lxdConfig has no effect"},
	{kinds: machineKind, path: "parent", because: "written by providers that make virtual machines, not by users"},
	{kinds: templates, path: "template.spec.parent", because: "as of a MaasMachine"},
}, ofTheCloud()...)

// ofTheCloud returns excuses for fields of AWS that only the control-plane-operator of an OpenShift payload reads. It
// calls AWS, and gets the complete platform block.
func ofTheCloud() []excuse {
	var all []excuse
	for _, path := range []string{
		"cloudProviderConfig.zone", "serviceEndpoints", "multiArch", "sharedVPC", "terminationHandlerQueueURL",
	} {
		all = append(all, excuse{kinds: clusterKind, path: "platform.aws." + path, because: "the payload's control-plane-operator reads it in the HostedControlPlane"})
	}
	return all
}
