// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/aws"
	"github.com/openshift/hypershift/support/objectstore"
	"github.com/openshift/hypershift/support/objectstore/storetest"
	"github.com/openshift/hypershift/support/pki"
)

// TestIssuer runs the lifecycle of a cluster whose issuer the operator publishes, with the operator's rights.
func TestIssuer(t *testing.T) {
	g := NewWithT(t)
	store := storetest.New(t)
	options, flags := &aws.Options{}, pflag.NewFlagSet("operator", pflag.ContinueOnError)
	options.AddFlags(flags)
	g.Expect(flags.Parse([]string{
		"--oidc-storage-provider-s3-bucket-name=" + storetest.Bucket, "--oidc-storage-provider-s3-region=eu-west-1", "--oidc-storage-provider-s3-endpoint=" + store.URL,
		"--oidc-storage-provider-s3-credentials=" + filepath.Join(store.Dir(t), objectstore.CredentialsKey),
	})).To(Succeed())
	plugin, err := options.New(platform.Environment{})
	g.Expect(err).NotTo(HaveOccurred())
	admin, operator := fixture.Start(t), fixture.AsOperator(t)
	g.Expect(plugin.AddToScheme(admin.Scheme())).To(Succeed())
	g.Expect(plugin.AddToScheme(operator.Scheme())).To(Succeed())
	subject := Subject{
		Type: hyperv1.AWSPlatform, Plugin: plugin,
		Cluster: func(hc *hyperv1.HostedCluster) {
			hc.Spec.Platform.AWS, hc.Spec.IssuerURL = awsCluster(), "https://oidc.s3.eu-west-1.amazonaws.com/"+infraID
		},
		Pool: func(pool *hyperv1.NodePool) {
			pool.Spec.Platform.AWS = &hyperv1.AWSNodePoolPlatform{InstanceType: "m5.large", AMI: "ami-0123456789abcdef0"}
		},
	}
	w := newWorld(t, admin, operator, subject, "issuer")
	w.create()
	g.Expect(w.condition(hyperv1.ValidOIDCConfiguration).Message).To(ContainSubstring("Waiting for the control plane"))
	g.Expect(w.cluster().Finalizers).NotTo(ContainElement(hyperv1.AWSOIDCDiscoveryFinalizer), "nothing is published")

	keys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.hosted(), Name: "sa-signing-key"}}
	g.Expect(pki.EnsureServiceAccountKey(keys)).To(Succeed())
	g.Expect(admin.Create(t.Context(), keys)).To(Succeed())
	w.settle()
	g.Expect(w.condition(hyperv1.ValidOIDCConfiguration).Status).To(Equal(metav1.ConditionTrue))
	g.Expect(w.cluster().Finalizers).To(ContainElement(hyperv1.AWSOIDCDiscoveryFinalizer))
	g.Expect(store.Names()).To(Equal([]string{infraID + "/.well-known/openid-configuration", infraID + "/openid/v1/jwks"}))
	settled(w)

	former := string(store.Objects[infraID+"/openid/v1/jwks"])
	delete(keys.Data, pki.ServiceAccountPrivateKey)
	g.Expect(pki.EnsureServiceAccountKey(keys)).To(Succeed())
	g.Expect(admin.Update(t.Context(), keys)).To(Succeed())
	w.settle()
	g.Expect(string(store.Objects[infraID+"/openid/v1/jwks"])).NotTo(Equal(former), "another key signs")

	g.Expect(admin.Delete(t.Context(), w.pool())).To(Succeed())
	w.destroy()
	g.Expect(store.Names()).To(BeEmpty())
}
