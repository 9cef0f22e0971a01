// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/pki"
)

const namespace = fixture.Namespace

type world struct {
	t     *testing.T
	r     *Reconciler
	clock *clocktesting.FakePassiveClock
	hcp   *hyperv1.HostedControlPlane
	infra *component.Infra
}

func newWorld(t *testing.T, objects ...crclient.Object) *world {
	t.Helper()
	w := &world{
		t:     t,
		clock: clocktesting.NewFakePassiveClock(time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)),
		hcp: &hyperv1.HostedControlPlane{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "demo", UID: "1"},
			Spec: hyperv1.HostedControlPlaneSpec{
				InfraID: "demo-abcde",
				Etcd:    hyperv1.EtcdSpec{ManagementType: hyperv1.Managed},
				Networking: hyperv1.ClusterNetworking{
					ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: *ipnet.MustParseCIDR("172.31.0.0/16")}},
				},
			},
		},
		infra: &component.Infra{API: component.Endpoint{Host: "192.0.2.10", Port: 30443}, Ignition: component.Endpoint{Host: "192.0.2.11"}},
	}
	c := fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(append(objects, w.hcp)...).Build()
	w.r = &Reconciler{Client: c, Clock: w.clock}
	return w
}

func (w *world) pass() error { return w.r.Reconcile(w.t.Context(), w.hcp, w.infra) }

func (w *world) secret(name string) *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{}
	if err := w.r.Client.Get(w.t.Context(), crclient.ObjectKey{Namespace: namespace, Name: name}, s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) bundle(name string) *x509.CertPool {
	w.t.Helper()
	cm := &corev1.ConfigMap{}
	if err := w.r.Client.Get(w.t.Context(), crclient.ObjectKey{Namespace: namespace, Name: name}, cm); err != nil {
		w.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(cm.Data["ca.crt"])) {
		w.t.Fatalf("ConfigMap %s holds no certificate", name)
	}
	return pool
}

func parsed(t *testing.T, raw []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(raw)
	if block == nil {
		t.Fatal("no PEM block")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestReconcile(t *testing.T) {
	w := newWorld(t)
	if err := w.pass(); err != nil {
		t.Fatal(err)
	}

	t.Run("When a client verifies a server certificate with its CA bundle, every name in use should be trusted", func(t *testing.T) {
		cases := []struct{ secret, key, bundle, host string }{
			{KASServer, "tls.crt", RootBundle, "192.0.2.10"},
			{KASServer, "tls.crt", RootBundle, "172.31.0.1"},
			{KASServer, "tls.crt", RootBundle, "kubernetes.default.svc"},
			{KASServerPrivate, "tls.crt", RootBundle, "kube-apiserver"},
			{KASServerPrivate, "tls.crt", RootBundle, "kube-apiserver.clusters-demo.svc"},
			{EtcdServer, "server.crt", EtcdBundle, "etcd-client.clusters-demo.svc"},
			{EtcdPeer, "peer.crt", EtcdBundle, "etcd-2.etcd-discovery.clusters-demo.svc"},
			{KCMServer, "tls.crt", RootBundle, "localhost"},
			{IgnitionServer, "tls.crt", RootBundle, "ignition-server"},
		}
		for _, tc := range cases {
			g := NewWithT(t)
			c := parsed(t, w.secret(tc.secret).Data[tc.key])
			_, err := c.Verify(x509.VerifyOptions{DNSName: tc.host, Roots: w.bundle(tc.bundle), CurrentTime: w.clock.Now()})
			g.Expect(err).NotTo(HaveOccurred(), "%s as %s", tc.secret, tc.host)
		}
	})

	t.Run("When an etcd member calls another, the certificate should name it without a wildcard", func(t *testing.T) {
		peer := parsed(t, w.secret(EtcdPeer).Data["peer.crt"])
		for _, pod := range []string{"etcd-0", "etcd-1", "etcd-2"} {
			NewWithT(t).Expect(peer.DNSNames).To(ContainElement(pod + ".etcd-discovery.clusters-demo.svc"))
		}
	})

	t.Run("When a client presents its certificate, the API server should know its user and groups", func(t *testing.T) {
		cases := []struct {
			secret, user string
			groups       []string
		}{
			{SystemAdminClient, "system:admin", []string{"system:masters"}},
			{HCCOClient, ConfigOperatorUser, []string{"kubernetes", "system:serviceaccounts:openshift"}},
			{KCMClient, "system:kube-controller-manager", []string{"kubernetes"}},
			{SchedulerClient, "system:kube-scheduler", []string{"kubernetes"}},
			{NodeBootstrap, NodeBootstrapper, []string{"system:serviceaccounts:openshift-machine-config-operator", "system:serviceaccounts", "system:bootstrappers"}},
			{IgnitionClient, "hypershift:ignition-server", nil},
			{KASKubeletClient, "system:kube-apiserver", []string{"kubernetes"}},
		}
		for _, tc := range cases {
			g := NewWithT(t)
			c := parsed(t, w.secret(tc.secret).Data["tls.crt"])
			g.Expect(c.Subject.CommonName).To(Equal(tc.user))
			g.Expect(c.Subject.Organization).To(ConsistOf(tc.groups))
			_, err := c.Verify(x509.VerifyOptions{Roots: w.bundle(ClientBundle), CurrentTime: w.clock.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
			g.Expect(err).NotTo(HaveOccurred(), tc.secret)
		}
	})

	t.Run("When a machine fetches its configuration, it should trust the ignition-server under its published host", func(t *testing.T) {
		g := NewWithT(t)
		roots := x509.NewCertPool()
		roots.AddCert(parsed(t, w.secret(IgnitionCA).Data["tls.crt"]))
		_, err := parsed(t, w.secret(IgnitionServing).Data["tls.crt"]).Verify(x509.VerifyOptions{DNSName: "192.0.2.11", Roots: roots, CurrentTime: w.clock.Now()})
		g.Expect(err).NotTo(HaveOccurred())
	})

	t.Run("When a client reads a kubeconfig, it should contain the right address", func(t *testing.T) {
		cases := []struct{ secret, key, server, scope string }{
			{AdminKubeconfig, "kubeconfig", "https://192.0.2.10:30443", "external"},
			{BootstrapKubeconfig, "kubeconfig", "https://192.0.2.10:30443", "bootstrap"},
			{ServiceNetworkKubeconfig, "kubeconfig", "https://kube-apiserver:6443", "service"},
			{IgnitionKubeconfig, "kubeconfig", "https://kube-apiserver:6443", "service"},
			{HCCOKubeconfig, "kubeconfig", "https://kube-apiserver:6443", "service"},
			{"demo-abcde-kubeconfig", "value", "https://kube-apiserver:6443", "capi"},
		}
		for _, tc := range cases {
			g := NewWithT(t)
			s := w.secret(tc.secret)
			g.Expect(s.Labels).To(HaveKeyWithValue("hypershift.openshift.io/kubeconfig", tc.scope))
			config, err := clientcmd.RESTConfigFromKubeConfig(s.Data[tc.key])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Host).To(Equal(tc.server))
		}
		NewWithT(t).Expect(w.secret("demo-abcde-kubeconfig").Labels).To(HaveKeyWithValue("cluster.x-k8s.io/cluster-name", "demo-abcde"))
	})

	t.Run("When nothing changes, it should write nothing", func(t *testing.T) {
		g := NewWithT(t)
		before := w.versions()
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.versions()).To(Equal(before))
	})

	t.Run("When the published address changes, it should issue new certificates and keep the CAs", func(t *testing.T) {
		g := NewWithT(t)
		ca, scheduler := w.secret(RootCA), w.secret(SchedulerClient)
		w.infra.API.Host = "api.example.com"
		g.Expect(w.pass()).To(Succeed())
		g.Expect(parsed(t, w.secret(KASServer).Data["tls.crt"]).DNSNames).To(ContainElement("api.example.com"))
		g.Expect(string(w.secret(AdminKubeconfig).Data["kubeconfig"])).To(ContainSubstring("https://api.example.com:30443"))
		g.Expect(w.secret(RootCA).ResourceVersion).To(Equal(ca.ResourceVersion))
		g.Expect(w.secret(SchedulerClient).ResourceVersion).To(Equal(scheduler.ResourceVersion))
	})

	t.Run("When certificates are about to expire, it should renew them and all kubeconfigs that contain them", func(t *testing.T) {
		g := NewWithT(t)
		authority, admin := w.secret(SystemAdminSigner), string(w.secret(AdminKubeconfig).Data["kubeconfig"])
		w.clock.SetTime(w.clock.Now().Add(pki.DefaultValidity - 24*time.Hour))
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.secret(SystemAdminSigner).ResourceVersion).To(Equal(authority.ResourceVersion))
		g.Expect(string(w.secret(AdminKubeconfig).Data["kubeconfig"])).NotTo(Equal(admin))
		for _, name := range []string{KASServer, HCCOClient, KCMServer} {
			g.Expect(parsed(t, w.secret(name).Data["tls.crt"]).NotAfter.After(w.clock.Now().Add(300 * 24 * time.Hour))).To(BeTrue())
		}
	})

	t.Run("When kubeAPIServerDNSName is set, it should write a kubeconfig for it, and delete it with the name", func(t *testing.T) {
		g := NewWithT(t)
		w.hcp.Spec.KubeAPIServerDNSName = "kube.example.com"
		g.Expect(w.pass()).To(Succeed())
		custom := w.secret(CustomAdminKubeconfig)
		g.Expect(string(custom.Data["kubeconfig"])).To(ContainSubstring("https://kube.example.com:30443"))
		g.Expect(custom.Labels).To(HaveKeyWithValue("hypershift.openshift.io/kubeconfig", "external"))
		w.hcp.Spec.KubeAPIServerDNSName = ""
		g.Expect(w.pass()).To(Succeed())
		err := w.r.Client.Get(t.Context(), crclient.ObjectKey{Namespace: namespace, Name: CustomAdminKubeconfig}, &corev1.Secret{})
		g.Expect(crclient.IgnoreNotFound(err)).To(Succeed())
		g.Expect(err).To(HaveOccurred())
	})
}

// versions returns the resource version of every Secret and ConfigMap.
func (w *world) versions() map[string]string {
	w.t.Helper()
	versions := map[string]string{}
	secrets, configMaps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	for _, list := range []crclient.ObjectList{secrets, configMaps} {
		if err := w.r.Client.List(w.t.Context(), list); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, s := range secrets.Items {
		versions["secret "+s.Name] = s.ResourceVersion
	}
	for _, c := range configMaps.Items {
		versions["configmap "+c.Name] = c.ResourceVersion
	}
	return versions
}

func TestUnmanagedEtcd(t *testing.T) {
	unmanaged := func(w *world) {
		w.hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{
			Endpoint: "https://etcd.example.com:2379", TLS: hyperv1.EtcdTLSConfig{ClientSecret: corev1.LocalObjectReference{Name: "mine"}},
		}}
	}
	mine := func(data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"}, Data: data}
	}
	t.Run("When the user brings an etcd, the API server should get the user's certificate and CA", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, mine(map[string][]byte{"etcd-client.crt": []byte("C"), "etcd-client.key": []byte("K"), "etcd-client-ca.crt": []byte("CA")}))
		unmanaged(w)
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.secret(EtcdClient).Data).To(Equal(map[string][]byte{"etcd-client.crt": []byte("C"), "etcd-client.key": []byte("K")}))
		cm := &corev1.ConfigMap{}
		g.Expect(w.r.Client.Get(t.Context(), crclient.ObjectKey{Namespace: namespace, Name: EtcdBundle}, cm)).To(Succeed())
		g.Expect(cm.Data["ca.crt"]).To(Equal("CA"))
		g.Expect(w.versions()).NotTo(HaveKey("secret " + EtcdServer))
		before := w.versions()
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.versions()).To(Equal(before))
	})
	for name, objects := range map[string][]crclient.Object{
		"is missing":  nil,
		"lacks a key": {mine(map[string][]byte{"etcd-client.crt": []byte("C")})},
	} {
		t.Run("When the user's Secret "+name+" the error should name it", func(t *testing.T) {
			w := newWorld(t, objects...)
			unmanaged(w)
			g := NewWithT(t)
			err := w.pass()
			g.Expect(err).To(MatchError(ContainSubstring("Secret clusters-demo/mine")))
			_, ofEtcd := errors.AsType[*OwnEtcdError](err)
			g.Expect(ofEtcd).To(BeTrue(), "else nobody would say that it is etcd which waits for it")
			g.Expect(w.secret(AdminKubeconfig).Data).NotTo(BeEmpty(), "all other certificates are kept meanwhile")
		})
	}
}

func TestSuppliedPKI(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	w.hcp.Annotations = map[string]string{DisableAnnotation: "true"}
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.versions()).To(BeEmpty(), "a user who supplies the PKI supplies all of it")
}

func TestNamedCertificates(t *testing.T) {
	named := func(w *world) {
		w.hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{
			ServingCerts: configv1.APIServerServingCerts{NamedCertificates: []configv1.APIServerNamedServingCert{{
				ServingCertificate: configv1.SecretNameReference{Name: "api-cert"},
			}}},
		}}
	}
	t.Run("When the user brings a serving certificate, the admin kubeconfig should trust it", func(t *testing.T) {
		g := NewWithT(t)
		other, err := pki.NewCA(pki.Name{CommonName: "corporate"}, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		w := newWorld(t, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "api-cert"}, Data: map[string][]byte{"tls.crt": other.CertPEM},
		})
		named(w)
		g.Expect(w.pass()).To(Succeed())
		trust := func(secret string) []byte {
			config, err := clientcmd.RESTConfigFromKubeConfig(w.secret(secret).Data["kubeconfig"])
			g.Expect(err).NotTo(HaveOccurred())
			return config.CAData
		}
		root := string(w.secret(RootCA).Data["ca.crt"])
		g.Expect(string(trust(AdminKubeconfig))).To(And(ContainSubstring(string(other.CertPEM)), ContainSubstring(root)), "the address of the API has the cluster's own certificate")
		g.Expect(string(trust(ServiceNetworkKubeconfig))).To(ContainSubstring(root))
		g.Expect(string(trust(ServiceNetworkKubeconfig))).NotTo(ContainSubstring(string(other.CertPEM)))
	})
	t.Run("When the user's serving certificate is missing, it should name the Secret", func(t *testing.T) {
		w := newWorld(t)
		named(w)
		NewWithT(t).Expect(w.pass()).To(MatchError(ContainSubstring("serving certificate Secret api-cert")))
	})
}

func TestLifetimeOf(t *testing.T) {
	cases := []struct {
		name        string
		annotations map[string]string
		want        pki.Lifetime
		wrong       string
	}{
		{name: "nothing", want: pki.Lifetime{Validity: time.Hour}},
		{name: "a validity", annotations: map[string]string{ValidityAnnotation: "24h"}, want: pki.Lifetime{Validity: 24 * time.Hour}},
		{name: "a fraction", annotations: map[string]string{RenewalAnnotation: "0.7"}, want: pki.Lifetime{Validity: time.Hour, RenewAfter: 0.7}},
		{name: "a percentage", annotations: map[string]string{RenewalAnnotation: "70"}, want: pki.Lifetime{Validity: time.Hour, RenewAfter: 0.7}},
		{name: "a validity in days", annotations: map[string]string{ValidityAnnotation: "30d"}, wrong: "is not a duration"},
		{name: "a zero validity", annotations: map[string]string{ValidityAnnotation: "0s"}, wrong: "is not a duration"},
		{name: "a negative validity", annotations: map[string]string{ValidityAnnotation: "-1h"}, wrong: "is not a duration"},
		{name: "a renewal of 100 percent", annotations: map[string]string{RenewalAnnotation: "100"}, wrong: "is not a fraction"},
		{name: "a renewal that is not a number", annotations: map[string]string{RenewalAnnotation: "soon"}, wrong: "is not a fraction"},
	}
	for _, tc := range cases {
		t.Run("When annotations give "+tc.name+" it should return the lifetime or an error", func(t *testing.T) {
			g := NewWithT(t)
			hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			got, err := LifetimeOf(hcp, pki.Lifetime{Validity: time.Hour})
			if tc.wrong != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.wrong)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestWrongLifetime(t *testing.T) {
	t.Run("When an annotation is invalid, it should return an error and renew certificates with the default", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.r.Lifetime = pki.Lifetime{Validity: time.Hour}
		w.hcp.Annotations = map[string]string{ValidityAnnotation: "30d"}
		g.Expect(w.pass()).To(MatchError(ContainSubstring("is not a duration")))
		before := parsed(t, w.secret("kas-server-crt").Data["tls.crt"])
		w.clock.SetTime(w.clock.Now().Add(59 * time.Minute))
		g.Expect(w.pass()).To(MatchError(ContainSubstring("is not a duration")))
		after := parsed(t, w.secret("kas-server-crt").Data["tls.crt"])
		g.Expect(after.NotAfter).To(BeTemporally(">", before.NotAfter))
	})
}

func TestNthAddress(t *testing.T) {
	cases := []struct {
		cidr  string
		n     int
		want  string
		wrong string
	}{
		{cidr: "172.31.0.0/16", n: 1, want: "172.31.0.1"},
		{cidr: "172.31.0.0/16", n: 10, want: "172.31.0.10"},
		{cidr: "fd00::/112", n: 10, want: "fd00::a"},
		{cidr: "172.31.0.0/30", n: 10, wrong: "too small"},
		{cidr: "", n: 1, wrong: "is not a CIDR"},
	}
	for _, tc := range cases {
		t.Run("When the network is "+tc.cidr+" it should return the n-th address or an error", func(t *testing.T) {
			g := NewWithT(t)
			got, err := NthAddress(tc.cidr, tc.n)
			if tc.wrong != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.wrong)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestAdminKubeconfigRef(t *testing.T) {
	g := NewWithT(t)
	hcp := &hyperv1.HostedControlPlane{}
	g.Expect(AdminKubeconfigRef(hcp)).To(Equal(hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig", Key: "kubeconfig"}))
	hcp.Spec.KubeConfig = ptr.To(hyperv1.KubeconfigSecretRef{Name: "mine", Key: "value"})
	g.Expect(AdminKubeconfigRef(hcp)).To(Equal(hyperv1.KubeconfigSecretRef{Name: "mine", Key: "value"}))
}
