// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"cmp"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

// defaultDomain is MAAS's default domain. No name is registered in it, because the endpoint is the control plane's.
const defaultDomain = "maas"

// ValidateHostedCluster requires the MAAS block and an identity.
func (*Platform) ValidateHostedCluster(hc *hyperv1.HostedCluster) error {
	if hc.Spec.Platform.MAAS == nil {
		return errors.New("spec.platform.maas is missing: set identityRef.name to the Secret with MAAS_ENDPOINT and MAAS_API_KEY")
	}
	if hc.Spec.Platform.MAAS.IdentityRef.Name == "" {
		return errors.New("spec.platform.maas.identityRef.name is empty: name the Secret with MAAS_ENDPOINT and MAAS_API_KEY")
	}
	return nil
}

// InfraCluster returns the MaasCluster, or nil until the API endpoint is known. Without an endpoint, a provider that
// does not support the custom DNS annotation would generate one.
func (p *Platform) InfraCluster(cluster platform.Cluster) *platform.Object {
	hc := cluster.HostedCluster
	if cluster.ControlPlane == nil || cluster.ControlPlane.Status.ControlPlaneEndpoint.Host == "" {
		return nil
	}
	endpoint := cluster.ControlPlane.Status.ControlPlaneEndpoint
	infra := &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: hc.Name}}
	return &platform.Object{Object: infra, Mutate: func() error {
		if infra.Annotations == nil {
			infra.Annotations = map[string]string{}
		}
		infra.Annotations[infrav1.CustomDNSAnnotation] = ""
		// Only a new MaasCluster takes over the machines of a lost one. An existing MaasCluster has its own machines.
		if lost := hc.Annotations[hyperv1.RestoredInfrastructureAnnotation]; lost != "" && infra.UID == "" {
			infra.Annotations[infrav1.RestoredFromAnnotation] = lost
		}
		if infra.Labels == nil {
			infra.Labels = map[string]string{}
		}
		infra.Labels["platform"] = "maas"
		// The domain of an existing MaasCluster cannot change.
		if infra.Spec.DNSDomain == "" {
			infra.Spec.DNSDomain = cmp.Or(spec(hc).DNSDomain, defaultDomain)
		}
		infra.Spec.ControlPlaneEndpoint = infrav1.APIEndpoint{Host: endpoint.Host, Port: int(endpoint.Port)}
		infra.Spec.FailureDomains = texts(spec(hc).FailureDomains)
		infra.Spec.IdentityRef = nil // The provider was started with the cluster's identity.
		if p.foreign(cluster) {
			infra.Spec.IdentityRef = &infrav1.IdentityReference{Name: mirrorName(hc)}
			if !thirdPartyOf(p.image(cluster)).zones {
				infra.Spec.FailureDomains = nil // The provider would copy them to the status as a map.
			}
		}
		return nil
	}}
}
