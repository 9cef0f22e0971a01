// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/skew"
)

const (
	clusterPart  = "cluster"
	needsCluster = clusterPart + " version"

	// lowestManagement is the lowest version of Kubernetes for a management cluster.
	lowestManagement = "1.31"

	hostedClusterCRD = "hostedclusters.hypershift.openshift.io"
	machineCRD       = "machines.cluster.x-k8s.io"
	capiVersion      = "v1beta2"
	// engineCRD is installed by the multicluster engine, which brings its own HyperShift.
	engineCRD = "multiclusterengines.multicluster.openshift.io"

	defaultClassAnnotation = "storageclass.kubernetes.io/is-default-class"
	operatorName           = "operator"

	installRemedy = "run: hypershift install"
)

// Management is the management cluster to check.
type Management struct {
	// Client reads the cluster; it may be nil if Version fails.
	Client client.Client
	// Version returns the version of Kubernetes, such as v1.36.3.
	Version func(ctx context.Context) (string, error)
	// StorageClass is the StorageClass of etcd's volumes; empty means the default one.
	StorageClass string
	// Installed makes it a failure that HyperShift is not installed, instead of a warning.
	Installed bool
}

// Checks returns all checks of the management cluster.
func (m *Management) Checks() []Check {
	all := append([]Check{{Name: "version", Run: m.version}}, m.essential()...)
	all = append(all, Check{Name: "operator", Run: m.operator}, Check{Name: "webhooks", Run: m.webhooks},
		Check{Name: "nodes", Run: m.nodes})
	for i := range all {
		all[i].Part = clusterPart
		if i > 0 {
			all[i].Needs = needsCluster
		}
	}
	return all
}

// Essential returns the quick checks whose failure means that no cluster comes up.
func (m *Management) Essential() []Check {
	restarts := func(Outcome) bool { return true } // An operator that does not run now may run soon.
	all := append(m.essential(), downgrade(Check{Name: "operator", Run: m.operator}, restarts))
	for i := range all {
		all[i].Part = clusterPart
	}
	return all
}

func (m *Management) essential() []Check {
	return []Check{{Name: "crds", Run: m.crds}, {Name: "storage", Run: m.storage}}
}

func (m *Management) version(ctx context.Context) Outcome {
	text, err := m.Version(ctx)
	if err != nil {
		return failed("set --kubeconfig or KUBECONFIG, and check that the API server answers",
			"the management cluster cannot be read: %v", err)
	}
	// Ignore what follows the numbers: vendors write their own suffix there.
	runs, err := version.ParseGeneric(text)
	if err != nil {
		return warn("", "the management cluster has the version %q, which is not one of Kubernetes", text)
	}
	if runs.LessThan(version.MustParseGeneric(lowestManagement)) {
		return failed("upgrade the management cluster to Kubernetes "+lowestManagement+" or later",
			"Kubernetes %s is too old", text)
	}
	return ok("Kubernetes %s", text)
}

// crds checks that the installed kinds are of this product.
func (m *Management) crds(ctx context.Context) Outcome {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := m.Client.Get(ctx, client.ObjectKey{Name: hostedClusterCRD}, crd)
	if apierrors.IsNotFound(err) {
		missing := warn(installRemedy, "HyperShift is not installed: there is no CRD %s", hostedClusterCRD)
		if m.Installed {
			missing.Status = Failed
		}
		return missing
	}
	if err != nil {
		return unreadable(err, "CustomResourceDefinitions")
	}
	if !hasMAAS(crd) {
		return failed("remove the other HyperShift (with a multicluster engine, disable its component hypershift), "+
			"or use another management cluster",
			"the CRD %s belongs to another HyperShift: it has no platform MAAS", hostedClusterCRD)
	}
	installed := cmp.Or(crd.Annotations[skew.Annotation], skew.First)
	if err := skew.Check(skew.CLI, skew.Version, installed); err != nil {
		return failed("use the command line of version "+installed, "%v", err)
	}
	if problem := m.otherProducts(ctx); problem != nil {
		return *problem
	}
	return ok("HyperShift %s is installed", installed)
}

// otherProducts checks the kinds that several products install; nil if they fit.
func (m *Management) otherProducts(ctx context.Context) *Outcome {
	machines := &apiextensionsv1.CustomResourceDefinition{}
	switch err := m.Client.Get(ctx, client.ObjectKey{Name: machineCRD}, machines); {
	case apierrors.IsNotFound(err):
		return ptr.To(failed(installRemedy, "the CRD %s of Cluster API is missing", machineCRD))
	case err != nil:
		return ptr.To(unreadable(err, "CustomResourceDefinitions"))
	case !slices.ContainsFunc(machines.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == capiVersion && v.Served
	}):
		return ptr.To(failed("upgrade that Cluster API to v1.11 or later",
			"the CRD %s belongs to another installation and does not serve %s", machineCRD, capiVersion))
	}
	engine := &apiextensionsv1.CustomResourceDefinition{}
	if m.Client.Get(ctx, client.ObjectKey{Name: engineCRD}, engine) == nil {
		return ptr.To(warn("disable its component hypershift, which would replace the CRDs of this one",
			"a multicluster engine is installed on this cluster"))
	}
	return nil
}

// hasMAAS reports whether HostedClusters have the platform MAAS.
func hasMAAS(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, v := range crd.Spec.Versions {
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		if _, found := v.Schema.OpenAPIV3Schema.Properties["spec"].Properties["platform"].Properties["maas"]; found {
			return true
		}
	}
	return false
}

// storage checks that etcd gets volumes.
func (m *Management) storage(ctx context.Context) Outcome {
	var classes storagev1.StorageClassList
	if err := m.Client.List(ctx, &classes); err != nil {
		return unreadable(err, "StorageClasses")
	}
	var names, defaults []string
	for _, class := range classes.Items {
		names = append(names, class.Name)
		if class.Annotations[defaultClassAnnotation] == "true" {
			defaults = append(defaults, class.Name)
		}
	}
	slices.Sort(names)
	has := cmp.Or(strings.Join(names, ", "), "none")
	switch {
	case m.StorageClass != "" && slices.Contains(names, m.StorageClass):
		return ok("etcd uses StorageClass %s", m.StorageClass)
	case m.StorageClass != "":
		return failed("name another one with --etcd-storage-class, or create it",
			"there is no StorageClass %q; there is: %s", m.StorageClass, has)
	case len(defaults) == 0:
		return failed("mark one with the annotation "+defaultClassAnnotation+"=true, or name one with --etcd-storage-class",
			"no StorageClass is the default one, so etcd gets no volume; there is: %s", has)
	case len(defaults) > 1:
		return warn("keep the annotation on one, or name one with --etcd-storage-class",
			"several StorageClasses are marked as the default one: %s", strings.Join(defaults, ", "))
	}
	return ok("StorageClass %s is the default one", defaults[0])
}

// operator checks that one operator runs, in any namespace.
func (m *Management) operator(ctx context.Context) Outcome {
	var found appsv1.DeploymentList
	if err := m.Client.List(ctx, &found, client.MatchingLabels{hyperv1.OperatorComponentLabel: operatorName}); err != nil {
		return unreadable(err, "Deployments of all namespaces")
	}
	switch len(found.Items) {
	case 0:
		return warn(installRemedy, "no operator is installed")
	case 1:
	default:
		return failed("remove one of them", "%d operators are installed, in namespaces %s and %s", len(found.Items),
			found.Items[0].Namespace, found.Items[1].Namespace)
	}
	operator := &found.Items[0]
	where := fmt.Sprintf("Deployment %s/%s", operator.Namespace, operator.Name)
	desired := ptr.Deref(operator.Spec.Replicas, 1)
	if desired == 0 {
		return warn("run one outside of the cluster, or set its replicas to 1", "the operator of %s has no replica", where)
	}
	if operator.Status.AvailableReplicas > 0 {
		return ok("the operator of %s runs", where)
	}
	why := "it has no pod yet"
	var pods corev1.PodList
	if err := m.Client.List(ctx, &pods, client.InNamespace(operator.Namespace),
		client.MatchingLabels{"name": operatorName}); err == nil {
		for i := range pods.Items {
			why = cmp.Or(podTrouble(&pods.Items[i]), "its pod is not Ready")
		}
	}
	return failed("kubectl describe pods -n "+operator.Namespace+" -l name="+operatorName,
		"the operator of %s does not run: %s", where, why)
}

func (m *Management) nodes(ctx context.Context) Outcome {
	var nodes corev1.NodeList
	if err := m.Client.List(ctx, &nodes); err != nil {
		return unreadable(err, "Nodes")
	}
	var away []string
	for _, node := range nodes.Items {
		ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if !ready {
			away = append(away, node.Name)
		}
	}
	all := len(nodes.Items)
	switch {
	case all == len(away):
		return failed("repair the nodes, or add one", "none of the %d nodes is Ready: no control plane can run", all)
	case len(away) > 0:
		return warn("repair or remove them", "%d of %d nodes are Ready; not Ready: %s", all-len(away), all,
			strings.Join(away, ", "))
	case all < 3:
		return ok("Ready nodes: %d; highly available control planes need 3", all)
	}
	return ok("Ready nodes: %d", all)
}

// unreadable describes objects that cannot be read.
func unreadable(err error, what string) Outcome {
	switch {
	case apierrors.IsForbidden(err):
		return skipped("run this as a user with that right, or ask an administrator", "you have no right to read %s", what)
	case meta.IsNoMatchError(err):
		return skipped("", "the management cluster does not serve %s", what)
	case apierrors.IsUnauthorized(err):
		return failed("log in again, or set --kubeconfig", "the management cluster refuses the credentials of the kubeconfig")
	}
	return failed("check that the management cluster answers: kubectl get --raw /readyz", "%s cannot be read: %v", what,
		err)
}
