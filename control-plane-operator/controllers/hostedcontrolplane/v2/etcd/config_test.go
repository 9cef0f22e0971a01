// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/component"
	supportpki "github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/testenv"
)

var errAway = errors.New("the API server is away")

// reader returns a client of a hosted namespace with the given objects.
func reader(objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(objects...).Build()
}

// away returns a client whose requests all fail.
func away() client.Client {
	return testenv.Intercept(reader(), func(testenv.Request) error { return errAway })
}

func threeMembers() *hyperv1.HostedControlPlane {
	hcp := fixture.ControlPlane()
	hcp.Spec.ControllerAvailabilityPolicy = hyperv1.HighlyAvailable
	return hcp
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name}
}

// TestHowMembersJoin checks the peers in a member's configuration. They decide whether it may start without data. A
// member that had data and starts without it would forget its votes.
func TestHowMembersJoin(t *testing.T) {
	notes := &corev1.ConfigMap{ObjectMeta: named(NotesConfigMap), Data: map[string]string{"etcd-1": "Joining", "etcd-2": "Started 1234"}}
	scope := &component.Scope{HCP: threeMembers(), Client: reader(notes)}
	cm := &corev1.ConfigMap{}
	NewWithT(t).Expect(adaptConfig(t.Context(), scope, cm)).To(Succeed())
	for pod, want := range map[string]struct {
		state   string
		members []string
	}{
		"etcd-0": {"new", []string{"etcd-0", "etcd-1", "etcd-2"}},
		"etcd-1": {"existing", []string{"etcd-0", "etcd-1", "etcd-2"}},
		"etcd-2": {"existing", []string{"etcd-2"}},
	} {
		t.Run("When the member is "+pod+" it should get the members to join and its own URLs", func(t *testing.T) {
			g, got := NewWithT(t), settings{}
			g.Expect(yaml.UnmarshalStrict([]byte(cm.Data[pod+".yaml"]), &got)).To(Succeed())
			g.Expect(got.Name).To(Equal(pod))
			g.Expect(got.InitialClusterState).To(Equal(want.state))
			var members []string
			for _, member := range strings.Split(got.InitialCluster, ",") {
				name, url, _ := strings.Cut(member, "=")
				g.Expect(url).To(Equal(PeerURL(fixture.Namespace, name)))
				members = append(members, name)
			}
			g.Expect(members).To(Equal(want.members))
			g.Expect(got.InitialAdvertisePeerURLs).To(Equal(PeerURL(fixture.Namespace, pod)))
			g.Expect(got.AdvertiseClientURLs).To(Equal(ClientURL(fixture.Namespace, pod)))
			g.Expect(got.InitialClusterToken).To(Equal(fixture.Namespace), "a member of another cluster at the same address is refused")
			g.Expect([]bool{got.ClientTransport.ClientCertAuth, got.PeerTransport.ClientCertAuth}).To(Equal([]bool{true, true}))
			g.Expect([]bool{got.InitialCorruptCheck, got.CompactHashCheck}).To(Equal([]bool{true, true}))
			g.Expect(got.ListenMetricsURLs).To(HavePrefix("http://"), "the kubelet has no certificate")
			g.Expect([]string{got.ListenClientURLs, got.ListenPeerURLs}).To(Equal([]string{"https://0.0.0.0:2379", "https://0.0.0.0:2380"}))
		})
	}
}

func TestNotes(t *testing.T) {
	for _, note := range []Note{{}, {Stage: Joining}, {Stage: Started, Volume: "1234-5678"}} {
		t.Run("When the note of a member is "+note.String()+" it should be the same after reading", func(t *testing.T) {
			g := NewWithT(t)
			got, err := ReadNotes(t.Context(), reader(&corev1.ConfigMap{ObjectMeta: named(NotesConfigMap), Data: map[string]string{"etcd-0": note.String()}}), fixture.Namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(map[string]Note{"etcd-0": note}))
		})
	}
	t.Run("When no notes exist, all members should start a new cluster", func(t *testing.T) {
		got, err := ReadNotes(t.Context(), reader(), fixture.Namespace)
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got["etcd-0"]).To(BeZero())
	})
	t.Run("When notes or volumes cannot be read, it should return an error and write no configuration", func(t *testing.T) {
		g, cm := NewWithT(t), &corev1.ConfigMap{}
		err := adaptConfig(t.Context(), &component.Scope{HCP: threeMembers(), Client: away()}, cm)
		g.Expect(err).To(MatchError("reading ConfigMap clusters-demo/etcd-members: the API server is away"))
		g.Expect(cm.Data).To(BeEmpty())
		_, err = readQuota(t.Context(), away(), threeMembers())
		g.Expect(err).To(MatchError("reading PersistentVolumeClaim clusters-demo/data-etcd-0: the API server is away"))
	})
}

// set returns the StatefulSet of a control plane.
func set(t *testing.T, hcp *hyperv1.HostedControlPlane, objects ...client.Object) *appsv1.StatefulSet {
	t.Helper()
	obj, err := New().Render(t.Context(), &component.Scope{HCP: hcp, Client: reader(objects...), Images: anyImage{}})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*appsv1.StatefulSet)
}

type anyImage struct{}

func (anyImage) ComponentImage(tag string) (string, bool) { return "registry.example/" + tag, true }

// TestWhatRollsMembers checks which changes restart members, since each restart is a risk for the cluster.
func TestWhatRollsMembers(t *testing.T) {
	claim := func(size string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: named("data-etcd-0"), Status: corev1.PersistentVolumeClaimStatus{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}}
	}
	mark := func(hcp *hyperv1.HostedControlPlane, objects ...client.Object) string {
		return set(t, hcp, objects...).Spec.Template.Annotations[configAnnotation]
	}
	before := mark(threeMembers())
	modern := threeMembers()
	modern.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{
		TLSSecurityProfile: &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType, Modern: &configv1.ModernTLSProfile{}}}}
	for name, tc := range map[string]struct {
		hcp     *hyperv1.HostedControlPlane
		objects []client.Object
		rolls   bool
	}{
		"nothing changes":                    {threeMembers(), nil, false},
		"members have started":               {threeMembers(), []client.Object{&corev1.ConfigMap{ObjectMeta: named(NotesConfigMap), Data: map[string]string{"etcd-0": "Started 1"}}}, false},
		"a volume has the requested size":    {threeMembers(), []client.Object{claim("8Gi")}, false},
		"a volume is smaller than requested": {threeMembers(), []client.Object{claim("4Gi")}, true},
		"the cluster requires modern TLS":    {modern, nil, true},
	} {
		t.Run("When "+name+" it should restart members only if their configuration changed", func(t *testing.T) {
			NewWithT(t).Expect(mark(tc.hcp, tc.objects...) != before).To(Equal(tc.rolls))
		})
	}
	t.Run("When the TLS profile is Modern, it should use etcd's own names for TLS versions", func(t *testing.T) {
		g := NewWithT(t)
		got := Settings(modern, "etcd-0", "", 1).(settings)
		g.Expect(got.TLSMinVersion).To(Equal("TLS1.3"))
		g.Expect(got.CipherSuites).To(BeEmpty())
		g.Expect(Settings(threeMembers(), "etcd-0", "", 1).(settings).CipherSuites).NotTo(BeEmpty())
	})
	t.Run("When quotas cannot be read, it should not restart any member", func(t *testing.T) {
		_, err := New().Render(t.Context(), &component.Scope{HCP: threeMembers(), Client: away(), Images: anyImage{}})
		NewWithT(t).Expect(err).To(MatchError(errAway))
	})
}

func TestVolumes(t *testing.T) {
	storage := func(volume *hyperv1.PersistentVolumeEtcdStorageSpec) *hyperv1.HostedControlPlane {
		hcp := fixture.ControlPlane()
		hcp.Spec.Etcd.Managed.Storage.PersistentVolume = volume
		return hcp
	}
	for name, tc := range map[string]struct {
		hcp         *hyperv1.HostedControlPlane
		size, class string
	}{
		"the spec has no volume settings":     {storage(nil), "8Gi", ""},
		"a size is set":                       {storage(&hyperv1.PersistentVolumeEtcdStorageSpec{Size: ptr.To(resource.MustParse("20Gi"))}), "20Gi", ""},
		"a storage class is set":              {storage(&hyperv1.PersistentVolumeEtcdStorageSpec{StorageClassName: ptr.To("fast")}), "8Gi", "fast"},
		"a managed etcd has no managed block": {&hyperv1.HostedControlPlane{ObjectMeta: named("demo")}, "8Gi", ""},
	} {
		t.Run("When "+name+" each member should have a volume of that size and class", func(t *testing.T) {
			g, s := NewWithT(t), set(t, tc.hcp)
			g.Expect(s.Spec.VolumeClaimTemplates).To(HaveLen(1))
			claim := s.Spec.VolumeClaimTemplates[0]
			g.Expect(claim.Spec.Resources.Requests.Storage().String()).To(Equal(tc.size))
			g.Expect(ptr.Deref(claim.Spec.StorageClassName, "")).To(Equal(tc.class))
			g.Expect(claim.Spec.AccessModes).To(Equal([]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}))
			g.Expect(ClaimName("etcd-0")).To(Equal(claim.Name + "-etcd-0"))
			g.Expect(s.Spec.Template.Spec.Containers[0].VolumeMounts).To(ContainElement(corev1.VolumeMount{Name: claim.Name, MountPath: DataDir}))
		})
	}
	t.Run("When volumes have grown, the quota should follow the smallest volume", func(t *testing.T) {
		g, cm := NewWithT(t), &corev1.ConfigMap{}
		claims := []client.Object{}
		for pod, size := range map[string]string{"etcd-0": "4Gi", "etcd-1": "8Gi"} {
			claims = append(claims, &corev1.PersistentVolumeClaim{ObjectMeta: named(ClaimName(pod)), Status: corev1.PersistentVolumeClaimStatus{
				Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}})
		}
		g.Expect(adaptConfig(t.Context(), &component.Scope{HCP: threeMembers(), Client: reader(claims...)}, cm)).To(Succeed())
		got := settings{}
		g.Expect(yaml.Unmarshal([]byte(cm.Data["etcd-2.yaml"]), &got)).To(Succeed())
		quota := resource.MustParse("3.2Gi")
		g.Expect(got.QuotaBackendBytes).To(BeNumerically("~", quota.Value(), 8))
	})
}

func TestEnabled(t *testing.T) {
	for management, want := range map[hyperv1.EtcdManagementType]bool{hyperv1.Managed: true, hyperv1.Unmanaged: false, "": true} {
		hcp := fixture.ControlPlane()
		hcp.Spec.Etcd.ManagementType = management
		got, err := enabled(t.Context(), &component.Scope{HCP: hcp})
		NewWithT(t).Expect(got, err).To(Equal(want), "of management type %s", management)
	}
}

// clientOf returns the objects with the API server's credentials for an etcd.
func clientOf(t *testing.T, cert, key, ca []byte) client.WithWatch {
	t.Helper()
	return reader(
		&corev1.Secret{ObjectMeta: named("etcd-client-tls"), Data: map[string][]byte{"etcd-client.crt": cert, "etcd-client.key": key}},
		&corev1.ConfigMap{ObjectMeta: named("etcd-ca"), Data: map[string]string{"ca.crt": string(ca)}},
	)
}

func TestAskOwn(t *testing.T) {
	ca := fixture.CA(t, "corporate")
	pair, err := ca.Issue(supportpki.Leaf{Name: supportpki.Name{CommonName: "hosted"}, Client: true}, supportpki.Lifetime{Validity: time.Hour}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	asks := func(ctx context.Context, c client.Reader, endpoint string) error {
		hcp := own(endpoint)
		hcp.Namespace = fixture.Namespace
		return AskOwn(ctx, c, hcp, nil)
	}
	t.Run("When the client certificate does not exist yet, it should report that it is not issued yet", func(t *testing.T) {
		NewWithT(t).Expect(asks(t.Context(), reader(), "https://a.example:2379")).To(MatchError("the client certificate for etcd has not been copied yet"))
	})
	t.Run("When the client certificate cannot be read, it should return the read error", func(t *testing.T) {
		NewWithT(t).Expect(asks(t.Context(), away(), "https://a.example:2379")).To(MatchError("reading what etcd's clients authenticate with: the API server is away"))
	})
	for name, c := range map[string]client.Reader{
		"the certificate is invalid":             clientOf(t, []byte("none"), pair.KeyPEM, ca.CertPEM),
		"the key belongs to another certificate": clientOf(t, pair.CertPEM, ca.KeyPEM, ca.CertPEM),
		"the CA contains no certificate":         clientOf(t, pair.CertPEM, pair.KeyPEM, nil),
	} {
		t.Run("When "+name+" the error should name the Secret and the ConfigMap without their content", func(t *testing.T) {
			_, err := ClientTLS(t.Context(), c, fixture.Namespace)
			g := NewWithT(t)
			g.Expect(err).To(MatchError(And(HavePrefix("reading Secret etcd-client-tls and ConfigMap etcd-ca of namespace clusters-demo: "), Not(ContainSubstring("BEGIN")))))
			g.Expect(apierrors.IsNotFound(err)).To(BeFalse())
		})
	}
	t.Run("When the address policy blocks an endpoint, it should not connect to it", func(t *testing.T) {
		hcp := own("https://127.0.0.1:2379")
		hcp.Namespace = fixture.Namespace
		err := AskOwn(t.Context(), clientOf(t, pair.CertPEM, pair.KeyPEM, ca.CertPEM), hcp, &addressguard.Guard{})
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("is not called"), ContainSubstring("blocked by the address policy"))))
	})
	t.Run("When the server accepts the connection and stays silent, it should report that etcd does not answer", func(t *testing.T) {
		silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		url := "https://" + silent.Addr().String()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		NewWithT(t).Expect(asks(ctx, clientOf(t, pair.CertPEM, pair.KeyPEM, ca.CertPEM), url)).To(MatchError("the etcd at " + url + " does not answer"))
	})
}

func TestCause(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain",
		`rpc error: code = Unavailable desc = connection error: desc = "transport: authentication handshake failed: remote error: tls: bad certificate"`: "transport: authentication handshake failed: remote error: tls: bad certificate",
		`rpc error: code = Unavailable desc = connection error: desc = "error reading \"x\""`:                                                            `error reading "x"`,
		`rpc error: code = Unavailable desc = no host "x"`:                                                                                               `no host "x"`,
		"rpc error: code = Unknown desc = etcdserver: no leader":                                                                                         "etcdserver: no leader",
	} {
		t.Run("When the error of etcd's client is "+text+" it should drop the gRPC prefix", func(t *testing.T) {
			NewWithT(t).Expect(cause(errors.New(text))).To(Equal(want))
		})
	}
}
