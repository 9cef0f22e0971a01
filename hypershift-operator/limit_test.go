// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/tenantlimits"
	"github.com/openshift/hypershift/support/testenv"
)

// TestOperatorWithoutMAAS runs the operator without the kinds of MAAS and without the kind of etcd backups. The
// operator serves the other platforms, and stops for a restart when the MAAS kinds are installed.
func TestOperatorWithoutMAAS(t *testing.T) {
	g := NewWithT(t)
	config := testenv.Start(t, "hypershift", "clusterapi")
	c, err := client.New(config, client.Options{Scheme: fixture.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	kept := excludeBackups(t, config, c)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: fixture.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		// Another test in this process runs controllers with the same names.
		Controller: controllerconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	g.Expect(err).NotTo(HaveOccurred())
	platforms := fixture.Platforms(nil)
	g.Expect(platforms.SwitchOff(t.Context(), c)).To(Succeed())
	g.Expect(addControllers(mgr, &runFlags{namespace: "default", limits: tenantlimits.Limits{Registries: []string{"*"}}}, platforms, "registry.example/hypershift:1", nil, fixture.Payloads())).To(Succeed())
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(cancel)
	reason := func(namespace string, conditionType hyperv1.ConditionType) func() string {
		return func() string {
			hc := &hyperv1.HostedCluster{}
			_ = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: fixture.ClusterName}, hc)
			if found := meta.FindStatusCondition(hc.Status.Conditions, string(conditionType)); found != nil {
				return found.Reason
			}
			return ""
		}
	}

	none := fixture.HostedCluster("without-maas")
	none.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.NonePlatform}
	fixture.Create(t, c, append(fixture.Inputs(none.Namespace), none)...)
	g.Eventually(reason(none.Namespace, hyperv1.SupportedHostedCluster), patience, tick).Should(Equal(hyperv1.AsExpectedReason))
	fixture.Create(t, c, fixture.HostedCluster("wants-maas"))
	g.Eventually(reason("wants-maas", hyperv1.SupportedHostedCluster), patience, tick).Should(Equal(hyperv1.UnsupportedHostedClusterReason))
	g.Expect(platforms.Why(hyperv1.MAASPlatform)).To(And(ContainSubstring("does not serve maasclusters.infrastructure.cluster.x-k8s.io"), ContainSubstring("hypershift install")))

	// A later install without --exclude-etcd makes no change that would restart the operator.
	backup := &hyperv1.HCPEtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "without-maas-demo", Name: "asked"},
		Spec: hyperv1.HCPEtcdBackupSpec{Storage: hyperv1.HCPEtcdBackupStorage{
			StorageType: hyperv1.S3BackupStorage,
			S3:          hyperv1.HCPEtcdBackupS3{Bucket: "backups", Region: "eu", KeyPrefix: "demo", Credentials: hyperv1.SecretReference{Name: "s3"}},
		}},
	}
	g.Expect(c.Create(ctx, kept)).To(Succeed())
	g.Eventually(func() error { return c.Create(ctx, backup) }, patience, tick).Should(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(backup), backup)).To(Succeed())
		told := meta.FindStatusCondition(backup.Status.Conditions, hyperv1.HCPEtcdBackupCompleted)
		g.Expect(told).To(HaveValue(HaveField("Reason", "NotSupported")))
	}, 10*time.Minute, tick).Should(Succeed(), "the operator looks for the kind less and less often, and every five minutes at last")

	kinds, err := crds.Load(crds.Infrastructure)
	g.Expect(err).NotTo(HaveOccurred())
	for _, kind := range kinds {
		g.Expect(stopped).NotTo(Receive(), "the operator ended before all kinds were there")
		kind.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		g.Expect(c.Create(ctx, kind)).To(Succeed())
	}
	g.Eventually(stopped, patience, tick).Should(Receive(MatchError(ContainSubstring("the kinds of platform MAAS are now served"))))
}

// excludeBackups deletes the CRD of etcd backups from the management cluster, and returns a copy that can be created
// again.
func excludeBackups(t *testing.T, config *rest.Config, c client.Client) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "hcpetcdbackups.hypershift.openshift.io"}}
	NewWithT(t).Expect(c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd)).To(Succeed())
	testenv.Uninstall(t, config, crd)
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name, Annotations: crd.Annotations}, Spec: crd.Spec}
}
