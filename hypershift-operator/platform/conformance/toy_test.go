// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"time"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
	"testing/fstest"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/platforms"
)

// The toy is an example of a platform that is added as docs/how-to/add-a-platform.md describes: a row of traits, kinds,
// and a plugin. Its settings are annotations, since the API has no block for it.
const (
	toyPlatform = hyperv1.PlatformType("Toy")
	toySize     = "toy.example/size"
	toyProvider = "registry.example/toy-provider:1"
)

var toyGroup = schema.GroupVersion{Group: "infrastructure.toy.example", Version: "v1beta1"}

func init() {
	platforms.Add(platforms.Traits{
		Type: toyPlatform, ControlPlaneType: hyperv1.NonePlatform, InfrastructureType: configv1.NonePlatformType,
		Architectures: []string{"amd64"}, DefaultUpgradeType: hyperv1.UpgradeTypeReplace, KeepsOutdatedUserData: true,
		HealthCheck: platforms.HealthCheck{NodeUnready: time.Minute, NodeStartup: time.Minute},
		Passes: []rbacv1.PolicyRule{{
			APIGroups: []string{toyGroup.Group}, Resources: []string{"toyclusters", "toymachines", "toymachinetemplates"},
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
		}},
	})
}

// toyObject is the type of the toy's three kinds.
type toyObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              toySpec `json:"spec,omitempty"`
}

type toySpec struct {
	Host string `json:"host,omitempty"`
	Size string `json:"size,omitempty"`
}

type (
	toyCluster         struct{ toyObject }
	toyMachine         struct{ toyObject }
	toyMachineTemplate struct{ toyObject }
	toyClusterList     struct{ toyList[toyCluster] }
	toyMachineList     struct{ toyList[toyMachine] }
	toyTemplateList    struct{ toyList[toyMachineTemplate] }
)

type toyList[T any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []T `json:"items"`
}

func (o toyObject) copied() toyObject {
	o.ObjectMeta = *o.ObjectMeta.DeepCopy()
	return o
}

func (o *toyCluster) DeepCopyObject() runtime.Object { return &toyCluster{o.copied()} }
func (o *toyMachine) DeepCopyObject() runtime.Object { return &toyMachine{o.copied()} }
func (o *toyMachineTemplate) DeepCopyObject() runtime.Object {
	return &toyMachineTemplate{o.copied()}
}
func (l *toyClusterList) DeepCopyObject() runtime.Object  { return copiedList(l) }
func (l *toyMachineList) DeepCopyObject() runtime.Object  { return copiedList(l) }
func (l *toyTemplateList) DeepCopyObject() runtime.Object { return copiedList(l) }

func copiedList[T any](list *T) *T {
	raw, err := yaml.Marshal(list)
	if err != nil {
		panic(err) // The toy's kinds contain only plain values.
	}
	other := new(T)
	if err := yaml.Unmarshal(raw, other); err != nil {
		panic(err)
	}
	return other
}

// toyOptions creates the plugin as the operator would.
type toyOptions struct{ image string }

func (o *toyOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.image, "toy-provider", toyProvider, "image of the toy's provider")
}

func (o *toyOptions) New(platform.Environment) (platform.Platform, error) {
	if o.image == "" {
		return nil, errors.New("--toy-provider is empty")
	}
	return toy{image: o.image}, nil
}

// toy is the plugin.
type toy struct{ image string }

func (toy) AddToScheme(scheme *runtime.Scheme) error {
	for kind, obj := range map[string]runtime.Object{
		"ToyCluster": &toyCluster{}, "ToyMachine": &toyMachine{}, "ToyMachineTemplate": &toyMachineTemplate{},
		"ToyClusterList": &toyClusterList{}, "ToyMachineList": &toyMachineList{}, "ToyMachineTemplateList": &toyTemplateList{},
	} {
		scheme.AddKnownTypeWithName(toyGroup.WithKind(kind), obj)
	}
	metav1.AddToGroupVersion(scheme, toyGroup)
	return nil
}

func (toy) CRDs() []string {
	return []string{"toyclusters." + toyGroup.Group, "toymachines." + toyGroup.Group, "toymachinetemplates." + toyGroup.Group}
}

func (toy) Underway() []string { return []string{"WindingUp"} }

func (toy) ValidateHostedCluster(*hyperv1.HostedCluster) error { return nil }

func (toy) InfraCluster(cluster platform.Cluster) *platform.Object {
	if cluster.ControlPlane == nil || cluster.ControlPlane.Status.ControlPlaneEndpoint.Host == "" {
		return nil
	}
	infra := &toyCluster{}
	infra.Namespace, infra.Name = cluster.Namespace, cluster.HostedCluster.Name
	return &platform.Object{Object: infra, Mutate: func() error {
		infra.Spec.Host = cluster.ControlPlane.Status.ControlPlaneEndpoint.Host
		return nil
	}}
}

func (toy) ReconcileCredentials(context.Context, client.Client, platform.Cluster) (platform.Credentials, error) {
	return platform.Credentials{Condition: condition.True(string(hyperv1.PlatformCredentialsFound), hyperv1.AsExpectedReason, "A toy needs none")}, nil
}

func (toy) CredentialsSecret(*hyperv1.HostedCluster) string                          { return "" }
func (toy) DeleteCredentials(context.Context, client.Client, platform.Cluster) error { return nil }

func (p toy) Provider(platform.Cluster) *component.Component {
	return &component.Component{
		Name: platform.ProviderName, Images: map[string]string{"toy": p.image},
		Manifests: fstest.MapFS{"deployment.yaml": {Data: []byte(toyDeployment)}, "role.yaml": {Data: []byte(toyRole)}},
		Adapters: map[string]component.Adapter{"deployment.yaml": component.Adapt(
			func(context.Context, *component.Scope, *appsv1.Deployment) error { return nil })},
		Options: component.Options{ManagementAccess: true, Singleton: true, Held: true},
	}
}

const toyDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: capi-provider}
spec:
  selector: {matchLabels: {app: capi-provider}}
  template:
    metadata: {labels: {app: capi-provider}}
    spec:
      serviceAccountName: capi-provider
      containers:
      - {name: manager, image: toy, resources: {requests: {cpu: 10m, memory: 20Mi}}}
`

const toyRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: capi-provider}
rules:
- {apiGroups: [infrastructure.toy.example], resources: [toyclusters, toymachines], verbs: [get, list, watch, patch]}
`

func (toy) ReconcileSecretEncryption(context.Context, client.Client, platform.Cluster) error {
	return nil
}
func (toy) OrphanedMachines(context.Context, client.Client, platform.Cluster) (string, error) {
	return "", nil
}
func (toy) ValidateNodePool(platform.Pool) error { return nil }

func (toy) MachineTemplate(pool platform.Pool) client.Object {
	return &toyMachineTemplate{toyObject{Spec: toySpec{Size: pool.NodePool.Annotations[toySize]}}}
}

func (toy) RollingTemplate(template client.Object) client.Object { return template }
func (toy) AdjustMachine(platform.Pool, client.Object)           {}
func (toy) MachineTemplates() client.ObjectList                  { return &toyTemplateList{} }
func (toy) UserDataFormat(context.Context, client.Reader, platform.Pool, bool) (platform.UserData, error) {
	return platform.UserData{Format: hyperv1.UserDataIgnition}, nil
}
func (toy) CustomizeIgnition(platform.Pool, *ignition.Config)      {}
func (toy) MachineProblem(client.Object) (reason, message string)  { return "", "" }
func (toy) MachineStart(client.Object) platform.MachineStart       { return platform.MachineStart{} }
func (toy) NodeStartup(platform.Pool) time.Duration                { return 0 }
func (toy) Machines() client.ObjectList                            { return &toyMachineList{} }
func (toy) MachineCapacity(client.Object) platform.MachineCapacity { return platform.MachineCapacity{} }
func (toy) Watched() []client.Object {
	return []client.Object{&toyCluster{}, &toyMachine{}, &toyMachineTemplate{}}
}

var _ platform.Platform = toy{}
