// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane"
	etcdcomponent "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/managementnetwork"
)

// askOwnEtcd checks the etcd of a tenant, unless its address belongs to the management cluster. NetworkPolicies block
// pods and Services of other namespaces, so an etcd in the hosted namespace is allowed.
func askOwnEtcd(ctx context.Context, reader client.Reader, hcp *hyperv1.HostedControlPlane) error {
	guard, err := addressguard.New("", "")
	if err != nil {
		return err
	}
	network, err := managementnetwork.Stored(ctx, reader, hcp.Namespace)
	if err != nil {
		return err
	}
	guard.Own = network.WithoutWorkloads()
	return etcdcomponent.AskOwn(ctx, reader, hcp, guard)
}

// published checks the published address of the API server of a namespace, which a tenant may choose.
type published struct {
	reader    client.Reader
	namespace string
}

func (p published) askHealth(ctx context.Context, at component.Endpoint) error {
	guard, err := p.guard(ctx)
	if err != nil {
		return err
	}
	return hostedcontrolplane.AskHealth(ctx, at, guard)
}

func (p published) askCertificate(ctx context.Context, address, host string, cas []byte) error {
	guard, err := p.guard(ctx)
	if err != nil {
		return err
	}
	return hostedcontrolplane.AskCertificate(ctx, address, host, cas, guard)
}

// guard returns the address policy for published addresses. It refuses the API of the management cluster, and the
// ports of Kubernetes on the nodes. Other ports of a node are allowed, even the port of the management API if the node
// does not serve it. NetworkPolicies block pods and Services of other namespaces. Operators of earlier versions do not
// write the addresses of the management cluster; the policy then does not know them.
func (p published) guard(ctx context.Context) (*addressguard.Guard, error) {
	guard, err := addressguard.New("", "")
	if err != nil {
		return nil, err
	}
	network, err := managementnetwork.Stored(ctx, p.reader, p.namespace)
	if apierrors.IsNotFound(err) {
		return guard, nil
	}
	if err != nil {
		return nil, err
	}
	network = network.WithoutWorkloads()
	network.APIPorts, network.WholeNodes = nil, false
	guard.Own = network
	return guard, nil
}
