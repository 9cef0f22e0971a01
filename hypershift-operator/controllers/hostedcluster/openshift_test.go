// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/rbac"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// payloadLines pins the input of a payload's operators, from one minor version to the next. The complete output of the
// oldest line is in testdata/contract/4.14.yaml and that of the newest in 5.1.yaml. In between, each table row lists
// what its line adds (+) and removes (-).
//
// The flags that a control-plane-operator is started with exist in all lines. They are --namespace, --deployment-name,
// --metrics-addr, --enable-ci-debug-output, --registry-overrides, --image-overrides. The source is openshift/hypershift
// control-plane-operator/main.go, in 4.14's form of 21,628 bytes, spectrocloud's release-4.19 at b7721ef and main at
// 00ad1b6. None of them is required. The operators read the images from the environment.
var payloadLines = []struct {
	version string
	// labels are the labels of the operator's image that this operator evaluates.
	labels  []string
	changes []string
}{
	// Dockerfile.control-plane of release-4.14 and -4.15 has no label for Pod Security.
	{version: "4.14.40"},
	{version: "4.15.40"},
	// Its Dockerfile is based on origin-base:4.16 and sets restricted-psa, which counts where OpenShift's SCCs are served.
	{version: "4.16.30", labels: []string{restrictedPods}},
	{version: "4.17.20", labels: []string{restrictedPods}},
	{version: "4.18.20", labels: []string{restrictedPods}},
	// control-plane-operator/controllers/hostedcontrolplane/v2/capi_manager of release-4.19: Cluster API v1.9 supports
	// this feature gate.
	{version: "4.19.10", labels: []string{restrictedPods}, changes: []string{
		"+        - --feature-gates=MachineSetPreflightChecks=false",
	}},
	// The same file of release-4.20: Cluster API v1.10 migrates CRDs unless these phases are skipped.
	{version: "4.20.1", labels: []string{restrictedPods}, changes: []string{
		"+        - --skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields",
	}},
	{version: "4.21.1", labels: []string{restrictedPods}},
	{version: "4.22.1", labels: []string{restrictedPods}},
	// The same file of main in August 2026: the TLS profile of the cluster.
	{version: "4.23.0", labels: []string{restrictedPods}, changes: []string{
		"+        - --tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384," +
			"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384," +
			"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
		"+        - --tls-min-version=VersionTLS12",
	}},
	{version: "5.0.0", labels: []string{restrictedPods}},
	{version: "5.1.0", labels: []string{restrictedPods}},
}

// lineReleases contains one payload of a line.
type lineReleases struct {
	fixture.Releases
	labels []string
}

func (r lineReleases) Labels(context.Context, string, release.Access) (map[string]string, error) {
	labels := map[string]string{}
	for _, label := range r.labels {
		labels[label] = "true"
	}
	return labels, nil
}

// rendered returns everything that the operator creates for a cluster of a payload, without the parts that differ
// between clusters.
func rendered(t *testing.T, c client.WithWatch, version string, labels []string) []string {
	t.Helper()
	namespace := "line-" + strings.ReplaceAll(version, ".", "-")
	s := newWorld(t, c, namespace)
	image := "registry.example/ocp-release:" + version
	components := fixture.Payloads()[fixture.OCPImage]
	images := map[string]string{}
	for _, tag := range []string{"hypershift", "cluster-capi-controllers", "haproxy-router"} {
		images[tag], _ = components.ComponentImage(tag)
	}
	s.Releases = lineReleases{labels: labels, Releases: fixture.Releases{image: releaseinfo.New(image, releaseinfo.Payload{
		Version: version, Distribution: releaseinfo.OpenShift, Architecture: releaseinfo.ArchitectureMulti, Components: images,
	})}}
	hc := fixture.HostedCluster(namespace)
	hc.Spec.Release.Image = image
	fixture.Create(t, c, append(fixture.Inputs(namespace), hc)...)
	s.mustPass()
	s.serve()
	s.mustPass()
	return s.given(version)
}

// given returns everything that the operator created in the hosted namespace, line by line.
func (s *world) given(version string) []string {
	s.t.Helper()
	hosted := &corev1.Namespace{}
	s.Expect(s.client.Get(s.t.Context(), client.ObjectKey{Name: s.hosted()}, hosted)).To(Succeed())
	var documents []string
	for _, list := range []client.ObjectList{
		&corev1.NamespaceList{}, &hyperv1.HostedControlPlaneList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &appsv1.DeploymentList{},
		&corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &networkingv1.NetworkPolicyList{},
	} {
		documents = append(documents, s.documents(list)...)
	}
	text := servedIDs.ReplaceAllString(strings.Join(documents, "---\n"), `"$1":"VARIES"`)
	uid := regexp.MustCompile(`\b` + hosted.Annotations[hyperv1.DefaultSecurityContextUIDAnnotation] + `\b`)
	// Replace the cluster's IDs first: they may contain strings that are replaced next.
	text = strings.NewReplacer(s.cluster().Spec.ClusterID, "CLUSTER", s.cluster().Spec.InfraID, "INFRA").Replace(text)
	text = strings.NewReplacer(s.namespace, "clusters", "ocp-release:"+version, "ocp-release:VERSION").Replace(text)
	text = uid.ReplaceAllString(text, "1001")
	for _, chosen := range []*regexp.Regexp{variable, nodePort} {
		text = chosen.ReplaceAllString(text, "$1: VARIES")
	}
	return strings.Split(text, "\n")
}

// servedIDs matches the UIDs in the record of the cluster in its hosted namespace.
var servedIDs = regexp.MustCompile(`"(namespace|cluster)":"[0-9a-f-]{36}"`)

// variable matches fields whose values are random or set by the API server.
var variable = regexp.MustCompile(`(?m)^(\s*(?:- )?(?:` + strings.Join([]string{
	"uid", "lastTransitionTime", regexp.QuoteMeta("tls.crt"), regexp.QuoteMeta("tls.key"), regexp.QuoteMeta("component.hypershift.openshift.io/config-hash"),
	regexp.QuoteMeta("hypershift.openshift.io/manifest-hash"), regexp.QuoteMeta("addresses.json"),
}, "|") + `)): .*$`)

// nodePort matches a node port that the API server chose. It also matches the port of the API server itself, which is
// in the same range in a test.
var nodePort = regexp.MustCompile(`(?m)^(\s+(?:- )?port): [1-6]\d{4}$`)

// documents returns the objects of one kind in the hosted namespace, or the namespace itself, as the API server returns
// them, sorted by name.
func (s *world) documents(list client.ObjectList) []string {
	s.t.Helper()
	s.Expect(s.client.List(s.t.Context(), list, client.InNamespace(s.hosted()))).To(Succeed())
	var documents []string
	s.Expect(meta.EachListItem(list, func(item runtime.Object) error {
		obj := item.(client.Object)
		if _, is := obj.(*corev1.Namespace); is && obj.GetName() != s.hosted() {
			return nil
		}
		gvk, err := apiutil.GVKForObject(obj, s.client.Scheme())
		if err != nil {
			return err
		}
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		for _, reset := range []func(){
			func() { obj.SetManagedFields(nil) }, func() { obj.SetResourceVersion("") }, func() { obj.SetCreationTimestamp(metav1.Time{}) },
			func() { obj.SetUID("") }, func() { obj.SetGeneration(0) },
		} {
			reset()
		}
		document, err := yaml.Marshal(obj)
		documents = append(documents, string(document))
		return err
	})).To(Succeed())
	return documents
}

// changed returns the lines that are only in before, marked with '-', and those that are only in after, marked with
// '+'.
func changed(before, after []string) []string {
	counts := map[string]int{}
	for _, line := range before {
		counts[line]--
	}
	for _, line := range after {
		counts[line]++
	}
	var lines []string
	for _, line := range slices.Sorted(maps.Keys(counts)) {
		mark := "+"
		if counts[line] < 0 {
			mark = "-"
		}
		for range max(counts[line], -counts[line]) {
			lines = append(lines, mark+line)
		}
	}
	slices.Sort(lines)
	return lines
}

func TestPayloadLines(t *testing.T) {
	c := fixture.Start(t)
	var before []string
	for i, line := range payloadLines {
		minor := line.version[:strings.LastIndex(line.version, ".")]
		t.Run("When the payload has version "+minor+", its operators should get the input of that version", func(t *testing.T) {
			got := rendered(t, c, line.version, line.labels)
			if i == 0 || i == len(payloadLines)-1 {
				goldenText(t, "contract/"+minor, strings.Join(got, "\n"))
			}
			if i > 0 {
				want := slices.Sorted(slices.Values(line.changes))
				if diff := cmp.Diff(want, changed(before, got)); diff != "" {
					t.Errorf("the line differs otherwise from the one before it (-want +got):\n%s", diff)
				}
			}
			before = got
		})
	}
}

// TestEveryLineIsPinned fails if a known minor version has no row.
func TestEveryLineIsPinned(t *testing.T) {
	var pinned []string
	for _, line := range payloadLines {
		pinned = append([]string{line.version[:strings.LastIndex(line.version, ".")]}, pinned...)
	}
	NewWithT(t).Expect(pinned).To(Equal(distributions.Of(releaseinfo.OpenShift).Minors))
}

// TestControlPlaneStatusIsNotOurs checks that the operator never writes the status of a HostedControlPlane. The
// payload's operators write it, each with the resource version that it read, so another writer would cause conflicts.
func TestControlPlaneStatusIsNotOurs(t *testing.T) {
	c := fixture.Start(t)
	s := newWorld(t, c, "status-owner")
	hc := fixture.HostedCluster(s.namespace)
	hc.Spec.Release.Image = fixture.OCPImage
	fixture.Create(t, c, append(fixture.Inputs(s.namespace), hc)...)
	s.mustPass()
	payload := &hyperv1.HostedControlPlane{}
	s.get(payload, fixture.ClusterName)
	t.Run("When the payload's operator updates its status in steps, it should never get a conflict", func(t *testing.T) {
		for step := range 5 {
			payload.Status.Version = fmt.Sprintf("4.20.%d", step)
			payload.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "api.example", Port: int32(6443 + step)}
			NewWithT(t).Expect(c.Status().Update(t.Context(), payload)).To(Succeed())
			s.mustPass()
		}
	})
	t.Run("When the operator tries to write the status, it should be forbidden", func(t *testing.T) {
		operator := s.Reconciler.Client
		for _, err := range []error{
			operator.Status().Update(t.Context(), payload.DeepCopy()),
			operator.Status().Patch(t.Context(), payload.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"status":{"version":"1"}}`))),
		} {
			NewWithT(t).Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		}
	})
}

// TestVolumesOfOpenShift checks that volume sizes stay unchanged, because the operator of an OpenShift payload cannot
// enlarge volumes and fails if it has to.
func TestVolumesOfOpenShift(t *testing.T) {
	c := fixture.Start(t)
	for name, tc := range map[string]struct{ image, size, said string }{
		"volumes-openshift":  {fixture.OCPImage, "8Gi", "without effect: etcd.managed.storage.persistentVolume.size"},
		"volumes-kubernetes": {"", "16Gi", hyperv1.AllIsWellMessage},
	} {
		t.Run("When the volume size of etcd is increased, it should be propagated only if it has an effect: "+name, func(t *testing.T) {
			s := newWorld(t, c, name)
			hc := fixture.HostedCluster(s.namespace)
			if tc.image != "" {
				hc.Spec.Release.Image = tc.image
			}
			hc.Spec.Etcd.Managed.Storage.PersistentVolume = &hyperv1.PersistentVolumeEtcdStorageSpec{Size: ptr.To(resource.MustParse("8Gi"))}
			fixture.Create(t, c, append(fixture.Inputs(s.namespace), hc)...)
			s.mustPass()
			s.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(hc), hc)).To(Succeed())
			hc.Spec.Etcd.Managed.Storage.PersistentVolume.Size = ptr.To(resource.MustParse("16Gi"))
			s.Expect(c.Update(t.Context(), hc)).To(Succeed())
			s.mustPass()
			hcp := &hyperv1.HostedControlPlane{}
			s.get(hcp, fixture.ClusterName)
			s.Expect(hcp.Spec.Etcd.Managed.Storage.PersistentVolume.Size.String()).To(Equal(tc.size))
			s.Expect(s.condition(hyperv1.ValidHostedClusterConfiguration).Message).To(ContainSubstring(tc.said))
			s.Expect(s.condition(hyperv1.ValidHostedClusterConfiguration).Status).To(Equal(metav1.ConditionTrue))
		})
	}
}

// TestConfigOperatorEvents checks that the config operator of a payload may write Events in the hosted namespace.
func TestConfigOperatorEvents(t *testing.T) {
	c := fixture.Start(t)
	s := newWorld(t, c, "config-operator")
	hc := fixture.HostedCluster(s.namespace)
	hc.Spec.Release.Image = fixture.OCPImage
	fixture.Create(t, c, append(fixture.Inputs(s.namespace), hc)...)
	s.mustPass()
	for _, name := range []string{"hosted-cluster-config", rbac.ConfigOperator} {
		configOperatorWrites(t, s, name)
	}
}

// configOperatorWrites writes an Event with the service account of a payload's config operator, and checks that it
// cannot read Secrets.
func configOperatorWrites(t *testing.T, s *world, name string) {
	t.Helper()
	account := fixture.As(t, "system:serviceaccount:"+s.hosted()+":"+name, "system:serviceaccounts")
	t.Run("the config operator with the service account "+name+" may write events", func(t *testing.T) {
		NewWithT(t).Eventually(func() error {
			return account.Create(t.Context(), &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Namespace: s.hosted(), GenerateName: "leader-"},
				InvolvedObject: corev1.ObjectReference{Namespace: s.hosted(), Kind: "Lease", Name: "hosted-cluster-config-operator-leader-elect"},
				Reason:         "LeaderElection", Type: corev1.EventTypeNormal,
			})
		}, "1m", "100ms").Should(Succeed())
	})
	t.Run("the service account "+name+" may not read Secrets", func(t *testing.T) {
		err := account.List(t.Context(), &corev1.SecretList{}, client.InNamespace(s.hosted()))
		NewWithT(t).Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	})
}
