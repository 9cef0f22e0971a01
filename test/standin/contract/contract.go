// SPDX-License-Identifier: Apache-2.0

// Package contract implements the infrastructure provider's side of the Cluster API contract for the kinds of AWS, the
// assisted service and KubeVirt.
//
// It replaces their providers where there is no cloud. It reads the same requests of the operator and writes the same
// status. An Infrastructure provides the machines.
package contract

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/api/util/contract"
)

// Order is a request for a machine.
type Order struct {
	// Key identifies the machine: all requests for one machine have the same key.
	Key string
	// Image is the platform's name of the image to boot; empty where the platform has a single image.
	Image string
	// UserData is the data that the machine configures itself with.
	UserData []byte
}

// Machine describes a machine of an Infrastructure.
type Machine struct {
	// ID is the Infrastructure's name of the machine, Zone its zone.
	ID, Zone string
	// Names are the possible names of its Node, Addresses its IP addresses.
	Names, Addresses []string
	// Running reports whether the machine has started with its user-data.
	Running bool
	// Failure is the reason why the machine can never run; empty without a failure.
	Failure string
}

// Infrastructure provides machines.
type Infrastructure interface {
	// Provide returns the machine for a request. It allocates one if no machine has the request's key.
	Provide(ctx context.Context, order Order) (Machine, error)
	// Release releases the machine with the key. It reports whether the machine is gone.
	Release(ctx context.Context, key string) (gone bool, err error)
}

// Contract describes one provider's implementation of the Cluster API contract.
type Contract struct {
	// Kind is the kind of the platform's infrastructure clusters, such as AWSCluster.
	Kind string
	// AddToScheme registers the provider's kinds.
	AddToScheme func(*runtime.Scheme) error
	// Cluster and Machine return empty objects of the provider's kinds. Cluster is nil where the operator itself sets the
	// infrastructure cluster ready.
	Cluster, Machine func() client.Object
	// Finalizer stays on a machine object until the machine behind it is gone.
	Finalizer string
	// Files maps the paths of files that the provider needs to text that each must contain.
	Files map[string]string
	// clusterReady sets the infrastructure cluster ready, after which machines may be created.
	clusterReady func(cluster client.Object)
	// order reads the request for a machine, except its key.
	order func(ctx context.Context, c client.Reader, machine client.Object, userData []byte) (Order, error)
	// providerID returns the provider ID for the machine's Node.
	providerID func(object client.Object, machine Machine) string
	// specify writes the provider's fields of the spec, and report its fields of the status.
	specify func(object client.Object, providerID string, machine Machine)
	report  func(object client.Object, now metav1.Time, machine Machine)
	// wait writes into the status which missing object the machine waits for.
	wait func(object client.Object, now metav1.Time, why string)
}

// All returns the contracts that this package implements.
func All() []Contract { return []Contract{AWS(), Agent(), KubeVirt()} }

// stage is a condition of contract v1beta1, with the reason to set while it is not True.
type stage struct{ conditionType, reason string }

// mark sets conditions to True, or to False with their reasons. It keeps the transition time of a condition whose
// status does not change.
func mark(conditions *[]contract.Condition, now metav1.Time, done bool, message string, stages ...stage) {
	for _, s := range stages {
		wanted := contract.Condition{Type: s.conditionType, Status: metav1.ConditionTrue, LastTransitionTime: now}
		if !done {
			wanted.Status, wanted.Severity, wanted.Reason, wanted.Message = metav1.ConditionFalse, "Info", s.reason, message
		}
		put(conditions, wanted)
	}
}

func put(conditions *[]contract.Condition, wanted contract.Condition) {
	if have := contract.Find(*conditions, wanted.Type); have != nil {
		if have.Status == wanted.Status {
			wanted.LastTransitionTime = have.LastTransitionTime
		}
		*have = wanted
		return
	}
	*conditions = append(*conditions, wanted)
}

// addresses returns the addresses of a machine. Cluster API and Kubernetes use the same address types.
func addresses(m Machine) []corev1.NodeAddress {
	var all []corev1.NodeAddress
	for _, name := range m.Names {
		all = append(all, corev1.NodeAddress{Type: corev1.NodeHostName, Address: name}, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: name})
	}
	for _, ip := range m.Addresses {
		all = append(all, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	return all
}

// failure returns the failure fields of a machine; nil without a failure.
func failure(m Machine) (reason, message *string) {
	if m.Failure == "" {
		return nil, nil
	}
	word := "CreateError"
	return &word, &m.Failure
}

// ready returns the condition that summarizes the others.
func ready(reason string) stage { return stage{clusterv1.ReadyCondition, reason} }
