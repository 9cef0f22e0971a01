// SPDX-License-Identifier: Apache-2.0

package fields

// excuse is why nobody reads a field and that is all right.
type excuse struct {
	kinds []string
	// path is of the field or one that it is a part of.
	path string
	// where is the package that takes care of it.
	where string
	// says is what that package tells a user who sets it, if it refuses or reports.
	says string
	// field is what that package reads whole, if it does so, with the type of its owner.
	field string
	// because is the reason of all else.
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

// ofTheCloud are fields of AWS for who calls it: the control-plane-operator of an OpenShift payload, which gets the platform's block whole.
func ofTheCloud() []excuse {
	var all []excuse
	for _, path := range []string{
		"cloudProviderConfig.zone", "serviceEndpoints", "multiArch", "sharedVPC", "terminationHandlerQueueURL",
	} {
		all = append(all, excuse{kinds: clusterKind, path: "platform.aws." + path, because: "the payload's control-plane-operator reads it in the HostedControlPlane"})
	}
	return all
}
