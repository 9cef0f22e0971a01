// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"time"

	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	"github.com/openshift/hypershift/support/condition"
)

// status computes the complete status of a control plane. It does not change its arguments.
func status(s *scope, o observed, now time.Time) hyperv1.HostedControlPlaneStatus {
	next := *s.hcp.Status.DeepCopy()
	next.ExternalManagedControlPlane = ptr.To(true)
	if s.infra != nil {
		next.ServedAddresses, next.ControlPlaneEndpoint = nextAddresses(s, o, now)
	}
	if s.tunnel != nil {
		next.TunnelAddresses = *s.tunnel
	}
	next.KubeConfig = nil
	if o.hasKubeconfig {
		next.KubeConfig = ptr.To(pki.AdminKubeconfigRef(s.applied()))
	}
	next.CustomKubeconfig = nil
	if o.hasCustomKubeconfig && s.applied().Spec.KubeAPIServerDNSName != "" {
		next.CustomKubeconfig = &hyperv1.KubeconfigSecretRef{Name: pki.CustomAdminKubeconfig, Key: pki.KubeconfigKey}
	}
	if o.encryption != nil && o.encryptionKey != nil {
		next.SecretEncryption = kubeapiserver.EncryptionStatus(next.SecretEncryption, o.encryption, *o.encryptionKey, now)
	}
	setVersions(&next, s, o, now)
	next.Conditions = condition.Merge(next.Conditions, s.hcp.Generation, conditions(s, o, next, now)...)
	next.Ready = condition.IsTrue(next.Conditions, string(hyperv1.HostedControlPlaneAvailable))
	// A control plane stays initialized: otherwise Cluster API would consider its nodes lost.
	next.Initialized = next.Initialized || next.Ready
	return next
}
