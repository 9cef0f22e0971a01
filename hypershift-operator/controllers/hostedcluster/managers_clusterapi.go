// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"errors"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	ownerNamespace = "hypershift.openshift.io/owner.namespace"
	ownerName      = "hypershift.openshift.io/owner.name"
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
	if image := s.hc.Annotations[hyperv1.ClusterAPIManagerImage]; image != "" {
		c.Images = map[string]string{capiManagerTag: image}
	}
	return c
}

// adaptCAPIManager sets the arguments that the payload's version of Cluster API supports.
func (s *scope) adaptCAPIManager(_ context.Context, cluster *component.Scope, deployment *appsv1.Deployment) error {
	container := &deployment.Spec.Template.Spec.Containers[0]
	version, traits := s.release.Version(), s.distribution()
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
	secret := s.secret(naming.CAPIWebhookCert)
	_, err := upsert.Object(ctx, r.Client, secret, func() error {
		s.own(secret)
		hosted.MarkOperatorObject(secret)
		if len(secret.Data[corev1.TLSCertKey]) > 0 && len(secret.Data[corev1.TLSPrivateKeyKey]) > 0 {
			return nil
		}
		pair, err := pki.NewCA(pki.Name{CommonName: "capi-webhooks", OrganizationalUnits: []string{"openshift"}}, s.now)
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

// ownerLabels returns the labels of objects outside the hosted namespace that belong to the cluster.
func (s *scope) ownerLabels() map[string]string {
	return map[string]string{ownerNamespace: s.hc.Namespace, ownerName: s.hc.Name}
}

// claimClusterWide labels an object outside the hosted namespace as the cluster's. It rejects an existing object of
// another owner, because the name derives from names that a tenant chose.
func (s *scope) claimClusterWide(obj metav1.Object) error {
	labels := obj.GetLabels()
	if obj.GetResourceVersion() != "" && (labels[ownerNamespace] != s.hc.Namespace || labels[ownerName] != s.hc.Name) {
		return errors.New("it is there already and not this cluster's: rename the cluster")
	}
	label(obj, s.ownerLabels())
	return nil
}
