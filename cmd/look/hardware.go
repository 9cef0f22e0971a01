// SPDX-License-Identifier: Apache-2.0

package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/health"
)

// Hardware is what a platform reports of the machine behind a Machine.
type Hardware struct {
	// Kind and Name are those of the infrastructure object, such as MaasMachine.
	Kind, Name, Namespace string
	// Host is the host name, and ID the platform's own identifier, such as MAAS's system id.
	Host, ID string
	// Zone is where the machine is, and Parent the host of a virtual machine.
	Zone, Parent string
	// Pool is the resource pool that the machine must be in; empty means any.
	Pool       string
	ProviderID string
	// State is the platform's own word for the state.
	State     string
	Addresses []string
	Created   metav1.Time
	// Finding is the first condition that is not good; nil if all are good.
	Finding *health.Finding
}

// HardwareReader reads the machines of one platform.
type HardwareReader interface {
	// Kind returns the kind of the infrastructure objects.
	Kind() string
	// List returns the machines of a namespace; of all namespaces if it is empty.
	List(ctx context.Context, c client.Reader, namespace string) ([]Hardware, error)
}

type hardwareKey struct{ kind, namespace, name string }

func (r *Reader) hardwareIn(ctx context.Context, namespace string) (map[hardwareKey]Hardware, error) {
	found := map[hardwareKey]Hardware{}
	for _, reader := range r.hardware {
		list, err := reader.List(ctx, r.client, namespace)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, h := range list {
			found[hardwareKey{reader.Kind(), h.Namespace, h.Name}] = h
		}
	}
	return found, nil
}

// Zone returns the zone of a machine; empty if it is not known.
func (m *Machine) Zone() string {
	if m.Hardware != nil && m.Hardware.Zone != "" {
		return m.Hardware.Zone
	}
	return cmp.Or(m.Status.FailureDomain, m.Spec.FailureDomain)
}

// Addresses returns the internal addresses of a machine.
func (m *Machine) Addresses() []string {
	var all []string
	for _, address := range m.Status.Addresses {
		if address.Type == clusterv1.MachineInternalIP {
			all = append(all, address.Address)
		}
	}
	if len(all) == 0 && m.Hardware != nil {
		return m.Hardware.Addresses
	}
	return all
}

// FindMachine returns the machine of a namespace that has a name or identifier, and all clusters of the namespace. The
// name of a Machine precedes the other names.
func (r *Reader) FindMachine(ctx context.Context, namespace, name string) (*Machine, []hyperv1.HostedCluster, error) {
	clusters, err := r.HostedClusters(ctx, namespace)
	if err != nil {
		return nil, nil, err
	}
	machines, err := r.Machines(ctx, clusters)
	if err != nil {
		return nil, nil, err
	}
	at := slices.IndexFunc(machines, func(m Machine) bool { return m.Name == name })
	if at < 0 {
		at = slices.IndexFunc(machines, func(m Machine) bool { return m.Called(name) })
	}
	if at < 0 {
		text := fmt.Sprintf("no cluster of namespace %s has a machine %q; check the name and --namespace", namespace, name)
		if denied := r.Denied(); denied != "" {
			text += ". " + strings.TrimSuffix(denied, ".")
		}
		return nil, nil, errors.New(text)
	}
	return &machines[at], clusters, nil
}

// Called reports whether a machine, its infrastructure object, its Node or its host has a name or identifier.
func (m *Machine) Called(name string) bool {
	if name == "" {
		return false
	}
	names := []string{m.Name, m.Spec.InfrastructureRef.Name, m.Status.NodeRef.Name, m.Spec.ProviderID}
	if m.Hardware != nil {
		names = append(names, m.Hardware.Host, m.Hardware.ID, m.Hardware.ProviderID)
	}
	return slices.Contains(names, name)
}
