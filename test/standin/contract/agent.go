// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
	"github.com/vincent-petithory/dataurl"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentv1 "github.com/openshift/hypershift/api/agent/v1beta1"
)

// Agent returns the contract of the provider of hosts that the assisted service knows.
func Agent() Contract {
	return Contract{
		Kind: "AgentCluster", AddToScheme: agentv1.AddToScheme,
		Cluster:   func() client.Object { return &agentv1.AgentCluster{} },
		Machine:   func() client.Object { return &agentv1.AgentMachine{} },
		Finalizer: "agentmachine.capi-provider.agent-install.openshift.io",
		clusterReady: func(cluster client.Object) {
			cluster.(*agentv1.AgentCluster).Status.Ready = true
		},
		order:      host,
		providerID: func(_ client.Object, m Machine) string { return "agent://" + m.ID },
		specify: func(object client.Object, providerID string, _ Machine) {
			object.(*agentv1.AgentMachine).Spec.ProviderID = &providerID
		},
		report: reportHost,
		wait: func(object client.Object, now metav1.Time, why string) {
			mark(&object.(*agentv1.AgentMachine).Status.Conditions, now, false, why, stage{"AgentReserved", "AgentNotYetFound"}, ready("AgentNotYetFound"))
		},
	}
}

// host returns a request whose user-data refers to the ignition endpoint of the AgentCluster. The assisted service
// takes only the HTTP headers from the user-data; its token is among them.
func host(ctx context.Context, c client.Reader, object client.Object, userData []byte) (Order, error) {
	endpoint, err := ignitionEndpoint(ctx, c, object)
	if err != nil {
		return Order{}, err
	}
	var given ignition.Config
	if err := json.Unmarshal(userData, &given); err != nil {
		return Order{}, fmt.Errorf("the user-data of AgentMachine %s is not of Ignition: %w", object.GetName(), err)
	}
	if len(given.Ignition.Config.Merge) != 1 {
		return Order{}, fmt.Errorf("the user-data of AgentMachine %s names %d servers of configurations", object.GetName(), len(given.Ignition.Config.Merge))
	}
	ca := &corev1.Secret{}
	ref := endpoint.CACertificateReference
	if err := c.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, ca); err != nil {
		return Order{}, fmt.Errorf("reading the CA of the ignition endpoint: %w", err)
	}
	source := dataurl.New(ca.Data[corev1.TLSCertKey], "text/plain").String()
	config := ignition.Config{Ignition: ignition.Ignition{
		Version:  given.Ignition.Version,
		Security: ignition.Security{TLS: ignition.TLS{CertificateAuthorities: []ignition.Resource{{Source: &source}}}},
		Config: ignition.IgnitionConfig{Merge: []ignition.Resource{{
			Source: ptr.To(endpoint.URL), HTTPHeaders: given.Ignition.Config.Merge[0].HTTPHeaders,
		}}},
	}}
	order := Order{}
	order.UserData, err = json.Marshal(config)
	return order, err
}

func ignitionEndpoint(ctx context.Context, c client.Reader, object client.Object) (*agentv1.IgnitionEndpoint, error) {
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: object.GetNamespace(), Name: object.GetLabels()[clusterv1.ClusterNameLabel]}
	if err := c.Get(ctx, key, cluster); err != nil {
		return nil, fmt.Errorf("reading Cluster %s: %w", key, err)
	}
	infra := &agentv1.AgentCluster{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: cluster.Spec.InfrastructureRef.Name}, infra); err != nil {
		return nil, fmt.Errorf("reading AgentCluster %s: %w", cluster.Spec.InfrastructureRef.Name, err)
	}
	if infra.Spec.IgnitionEndpoint == nil || infra.Spec.IgnitionEndpoint.CACertificateReference == nil {
		return nil, errors.New("the AgentCluster does not say where hosts get their configuration, or by which CA")
	}
	return infra.Spec.IgnitionEndpoint, nil
}

func reportHost(object client.Object, now metav1.Time, m Machine) {
	status := &object.(*agentv1.AgentMachine).Status
	status.Ready = m.Running
	status.AgentRef = &agentv1.AgentReference{Namespace: object.GetNamespace(), Name: m.ID}
	status.Addresses = nil
	for _, a := range addresses(m) {
		status.Addresses = append(status.Addresses, agentv1.MachineAddress{Type: string(a.Type), Address: a.Address})
	}
	status.FailureReason, status.FailureMessage = failure(m)
	mark(&status.Conditions, now, true, "", stage{conditionType: "AgentReserved"}, stage{conditionType: "AgentSpecSynced"},
		stage{conditionType: "AgentValidated"}, stage{conditionType: "AgentRequirementsMet"})
	mark(&status.Conditions, now, m.Running, "the host is being installed", stage{"Installed", "InstallationInProgress"}, ready("InstallationInProgress"))
}
