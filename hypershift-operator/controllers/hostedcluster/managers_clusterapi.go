// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/releaseversion"
	"github.com/openshift/hypershift/support/tlsprofile"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	capiManagerTag = "cluster-capi-controllers"
	crdReaderRole  = "hypershift-cluster-api"
	metricsRole    = "hypershift-metrics"
)

// capiManager returns the component of Cluster API's own controllers. The image comes from the release or from the
// cluster's annotation.
func (s *scope) capiManager() *component.Component {
	c := &component.Component{
		Name:      capiManagerName,
		Manifests: folder(capiManagerName),
		Adapters:  map[string]component.Adapter{"deployment.yaml": component.Adapt(s.adaptCAPIManager)},
		Options:   component.Options{ManagementAccess: true, Singleton: true, UserCAs: true, Held: true},
	}
	if image := s.HC.Annotations[hyperv1.ClusterAPIManagerImage]; image != "" {
		c.Images = map[string]string{capiManagerTag: image}
	}
	return c
}

// adaptCAPIManager sets the arguments that the payload's version of Cluster API supports.
func (s *scope) adaptCAPIManager(_ context.Context, cluster *component.Scope, deployment *appsv1.Deployment) error {
	container := &deployment.Spec.Template.Spec.Containers[0]
	version, traits := s.Release.Version(), s.Distribution()
	if releaseversion.AtLeast(version, traits.PreflightChecksGate) {
		// These checks require a control plane that Cluster API manages.
		container.Args = append(container.Args, "--feature-gates=MachineSetPreflightChecks=false")
	}
	if releaseversion.AtLeast(version, traits.CRDMigrationPhases) {
		// CRDs belong to the entire management cluster; the installer migrates them.
		container.Args = append(container.Args, "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields")
	}
	if releaseversion.AtLeast(version, traits.TLSFlags) {
		tls := tlsprofile.Of(cluster.HCP)
		flags := component.Flags(container.Args)
		flags.SetUnlessEmpty("tls-min-version", tls.MinVersion)
		flags.SetUnlessEmpty("tls-cipher-suites", strings.Join(tls.Ciphers, ","))
		container.Args = flags
	}
	return nil
}

// webhookCertificate creates the certificate that Cluster API's webhook server needs to start. No client calls the
// webhooks.
func (r *Reconciler) webhookCertificate(ctx context.Context, s *scope) error {
	secret := s.Secret(naming.CAPIWebhookCert)
	_, err := upsert.Object(ctx, r.Client, secret, func() error {
		s.Own(secret)
		hosted.MarkOperatorObject(secret)
		if len(secret.Data[corev1.TLSCertKey]) > 0 && len(secret.Data[corev1.TLSPrivateKeyKey]) > 0 {
			return nil
		}
		pair, err := pki.NewCA(pki.Name{CommonName: "capi-webhooks", OrganizationalUnits: []string{"openshift"}}, s.Now)
		if err != nil {
			return err
		}
		if secret.Type == "" {
			secret.Type = corev1.SecretTypeTLS
		}
		secret.Data = map[string][]byte{corev1.TLSCertKey: pair.CertPEM, corev1.TLSPrivateKeyKey: pair.KeyPEM}
		return nil
	})
	return err
}
