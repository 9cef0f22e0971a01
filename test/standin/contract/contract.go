// SPDX-License-Identifier: Apache-2.0

// Package contract is the infrastructure provider's part of Cluster API's contract, for the kinds of AWS, the assisted service and KubeVirt.
//
// It stands in for their providers where there is no cloud: it reads what the operator asks for as they do, and says what they say. What
// machines are made of is an Infrastructure's business.
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

// Order is a machine that somebody wants.
type Order struct {
	// Key is the same for each order of the same machine, and no other's.
	Key string
	// Image is what the machine starts from, as its platform calls it; empty where the platform has one alone.
	Image string
	// UserData is what the machine configures itself with.
	UserData []byte
}

// Machine is one that an Infrastructure has.
type Machine struct {
	// ID is the Infrastructure's name for it, Zone where it is.
	ID, Zone string
	// Names are those that its Node may have, Addresses its IP addresses.
	Names, Addresses []string
	// Running tells that it has started with its user-data.
	Running bool
	// Failure is why it will never run; empty while it may.
	Failure string
}

// Infrastructure has machines.
type Infrastructure interface {
	// Provide is the machine of an order, which gets one when it has none.
	Provide(ctx context.Context, order Order) (Machine, error)
	// Release gives the machine of a key back. It tells whether there is none any more.
	Release(ctx context.Context, key string) (gone bool, err error)
}

// Contract is one provider's.
type Contract struct {
	// Kind is what clusters of the platform name as their infrastructure, such as AWSCluster.
	Kind string
	// AddToScheme registers its kinds.
	AddToScheme func(*runtime.Scheme) error
	// Cluster and Machine are empty objects of its kinds. Cluster is nil where the operator itself says that it is ready.
	Cluster, Machine func() client.Object
	// Finalizer is on machines until what they stand for is gone.
	Finalizer string
	// Files must be there for the provider to work; each holds the text that it maps to.
	Files map[string]string
	// clusterReady says that machines may be made.
	clusterReady func(cluster client.Object)
	// order reads what a machine is to be, beside its key.
	order func(ctx context.Context, c client.Reader, machine client.Object, userData []byte) (Order, error)
	// providerID is what a Node of the machine is to say.
	providerID func(object client.Object, machine Machine) string
	// specify writes into the spec what the provider writes there, and report into the status.
	specify func(object client.Object, providerID string, machine Machine)
	report  func(object client.Object, now metav1.Time, machine Machine)
	// wait says in the status what a machine waits for that does not exist yet.
	wait func(object client.Object, now metav1.Time, why string)
}

// All are the contracts that can be played.
func All() []Contract { return []Contract{AWS(), Agent(), KubeVirt()} }

// stage is a condition of the contract v1beta1 with the reason while it is not True.
type stage struct{ conditionType, reason string }

// mark sets conditions to True or to False with their reasons, and leaves those alone that are so already.
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

// addresses are those of a machine by type, in the words of Cluster API and of Kubernetes alike.
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

// failure are the fields of a machine that the provider gave up; nil while it has not.
func failure(m Machine) (reason, message *string) {
	if m.Failure == "" {
		return nil, nil
	}
	word := "CreateError"
	return &word, &m.Failure
}

// ready is the condition that sums up the others.
func ready(reason string) stage { return stage{clusterv1.ReadyCondition, reason} }
