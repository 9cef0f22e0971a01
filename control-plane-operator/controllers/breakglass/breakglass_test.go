// SPDX-License-Identifier: Apache-2.0

package breakglass

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	certificatesv1alpha1 "github.com/openshift/hypershift/api/certificates/v1alpha1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/crds"
	supportpki "github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/testenv"
)

// world is a management cluster with two hosted namespaces. The operator of the first one runs with its real
// permissions.
type world struct {
	*WithT
	t      *testing.T
	config *rest.Config
	client client.Client
	signer *Signer
	caller *Revoker
	now    time.Time
}

const hostedA, foreign = "clusters-a", "clusters-b"

func newWorld(t *testing.T) *world {
	config := testenv.Start(t, crds.Certificates)
	c := testenv.Client(t, config, fixture.Scheme())
	w := &world{WithT: NewWithT(t), t: t, config: config, client: c, now: time.Now().Truncate(time.Second)}
	for _, namespace := range []string{hostedA, foreign} {
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		for class, name := range signers {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			_, err := supportpki.EnsureCA(secret, supportpki.Name{CommonName: namespace + "/" + class}, w.now)
			w.Expect(err).NotTo(HaveOccurred())
			w.create(secret)
		}
	}
	w.create(rights()...)
	impersonating := rest.CopyConfig(config)
	impersonating.Impersonate.UserName = "operator-a"
	own := testenv.Client(t, impersonating, fixture.Scheme())
	w.signer = &Signer{Client: own, Namespace: hostedA, Clock: clocktesting.NewFakePassiveClock(w.now)}
	w.caller = &Revoker{Client: c, Clock: clocktesting.NewFakePassiveClock(w.now)}
	w.Eventually(func() error {
		return errors.Join(own.List(t.Context(), &certificatesv1.CertificateSigningRequestList{}),
			own.Get(t.Context(), client.ObjectKey{Namespace: hostedA, Name: pki.SREBreakGlassSigner}, &corev1.Secret{}))
	}, time.Minute, 100*time.Millisecond).Should(Succeed(), "rights take a moment to be in force")
	return w
}

// rights returns the permissions that the hypershift-operator grants to a cluster's signer, and those that the signer
// needs in the hosted namespace.
func rights() []client.Object {
	const group = "certificates.k8s.io"
	of := func(verb string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"signers"}, Verbs: []string{verb},
			ResourceNames: []string{"hypershift.openshift.io/" + hostedA + ".customer-break-glass", "hypershift.openshift.io/" +
				hostedA + ".sre-break-glass"}}
	}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "operator-a"}}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{group}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{group}, Resources: []string{"certificatesigningrequests/approval"}, Verbs: []string{"update"}},
			{APIGroups: []string{group}, Resources: []string{"certificatesigningrequests/status"}, Verbs: []string{"patch"}},
			of("approve"), of("sign"),
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "a"}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: hostedA, Name: "a"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"", certificatesv1alpha1.GroupVersion.Group}, Resources: []string{"secrets", "certificatesigningrequestapprovals"}, Verbs: []string{"get"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: hostedA, Name: "a"}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "a"}},
	}
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, obj := range objects {
		w.Expect(w.client.Create(w.t.Context(), obj)).To(Succeed())
	}
}

// asks creates a CertificateSigningRequest of a user for the given signer.
func (w *world) asks(name, user, signer string, edit ...func(*certificatesv1.CertificateSigningRequest)) *certificatesv1.CertificateSigningRequest {
	w.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.Expect(err).NotTo(HaveOccurred())
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: user, Organization: []string{"system:masters"}}, DNSNames: []string{"kubernetes.default.svc"},
	}, private)
	w.Expect(err).NotTo(HaveOccurred())
	asked := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: "hypershift.openshift.io/" + signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
	for _, change := range edit {
		change(asked)
	}
	w.create(asked)
	return asked
}

func (w *world) approves(namespace, name string) {
	w.t.Helper()
	w.create(&certificatesv1alpha1.CertificateSigningRequestApproval{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
}

func (w *world) passes(asked *certificatesv1.CertificateSigningRequest) {
	w.t.Helper()
	for range 2 {
		_, err := w.signer.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(asked)})
		w.Expect(err).NotTo(HaveOccurred())
	}
	w.Expect(w.client.Get(w.t.Context(), client.ObjectKeyFromObject(asked), asked)).To(Succeed())
}

func (w *world) secret(namespace, name string) *corev1.Secret {
	w.t.Helper()
	secret := &corev1.Secret{}
	w.Expect(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, secret)).To(Succeed())
	return secret
}

func certificate(asked *certificatesv1.CertificateSigningRequest) *x509.Certificate {
	block, _ := pem.Decode(asked.Status.Certificate)
	if block == nil {
		return nil
	}
	cert, _ := x509.ParseCertificate(block.Bytes)
	return cert
}

func TestBreakGlass(t *testing.T) {
	w := newWorld(t)
	const customer, sre = hostedA + ".customer-break-glass", hostedA + ".sre-break-glass"

	t.Run("When a CSR is approved in the hosted namespace, it should sign a client certificate for at most 36 hours", func(t *testing.T) {
		asked := w.asks("anna", "system:customer-break-glass:anna", customer, func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.ExpirationSeconds = ptr.To[int32](30 * 24 * 3600)
		})
		w.passes(asked)
		w.Expect(asked.Status).To(Equal(certificatesv1.CertificateSigningRequestStatus{}), "nobody approved it")
		w.approves(hostedA, "anna")
		w.passes(asked)
		cert, signer := certificate(asked), w.secret(hostedA, pki.CustomerBreakGlassSigner)
		w.Expect(cert).NotTo(BeNil())
		w.Expect(cert.NotAfter).To(BeTemporally("==", w.now.Add(36*time.Hour).UTC()))
		w.Expect(cert.DNSNames).To(BeEmpty(), "it is no server's")
		w.Expect(cert.Subject.Organization).To(Equal([]string{"system:masters"}))
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(signer.Data["ca.crt"])
		_, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		w.Expect(err).NotTo(HaveOccurred())
		_, err = cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		w.Expect(err).To(HaveOccurred())
		settled := asked.ResourceVersion
		w.passes(asked)
		w.Expect(asked.ResourceVersion).To(Equal(settled))
	})

	t.Run("When a tenant approves a CSR for another cluster's signer, it should ignore the approval", func(t *testing.T) {
		testenv.NeedsServer(t, w.config)
		asked := w.asks("theirs", "system:customer-break-glass:eve", foreign+".customer-break-glass")
		w.approves(hostedA, "theirs")
		w.passes(asked)
		w.Expect(asked.Status).To(Equal(certificatesv1.CertificateSigningRequestStatus{}))
		// A compromised operator could not approve the request either.
		asked.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{w.signer.said(certificatesv1.CertificateApproved, "Mine", "")}
		w.Expect(w.signer.Client.SubResource("approval").Update(t.Context(), asked)).To(MatchError(ContainSubstring("user not permitted to approve")))
	})

	t.Run("When the approval is in another cluster's namespace, it should ignore the approval", func(t *testing.T) {
		asked := w.asks("elsewhere", "system:customer-break-glass:eve", customer)
		w.approves(foreign, "elsewhere")
		w.passes(asked)
		w.Expect(asked.Status).To(Equal(certificatesv1.CertificateSigningRequestStatus{}))
	})

	for _, tt := range []struct {
		name, user, signer, says string
		edit                     func(*certificatesv1.CertificateSigningRequest)
	}{
		{"node", "system:node:a", customer, "must be system:customer-break-glass:", nil},
		{"nobody", "system:customer-break-glass:", customer, "followed by a name", nil},
		{"other", "system:customer-break-glass:anna", sre, "must be system:sre-break-glass:", nil},
		{"server", "system:sre-break-glass:anna", sre, "is not for a client certificate", func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.Usages = append(c.Spec.Usages, certificatesv1.UsageServerAuth)
		}},
		{"useless", "system:sre-break-glass:anna", sre, `must name "client auth"`, func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature}
		}},
	} {
		t.Run("When a request is for "+tt.name+" it should fail with the reason", func(t *testing.T) {
			edit := tt.edit
			if edit == nil {
				edit = func(*certificatesv1.CertificateSigningRequest) {}
			}
			asked := w.asks(tt.name, tt.user, tt.signer, edit)
			w.approves(hostedA, tt.name)
			w.passes(asked)
			w.Expect(asked.Status.Certificate).To(BeEmpty())
			w.Expect(asked.Status.Conditions).To(ContainElement(And(
				HaveField("Type", certificatesv1.CertificateFailed), HaveField("Message", ContainSubstring(tt.says)))))
		})
	}

	t.Run("When a signer is revoked, it should revoke step by step, and the next revocation should wait", func(t *testing.T) {
		own := *w
		own.WithT, own.t = NewWithT(t), t
		own.revokes(sre)
	})
}

// revokes runs a revocation with a second one queued behind it. The test advances the rotation.
func (w *world) revokes(signer string) {
	first, second := w.revocation("first"), w.revocation("second")
	w.look(second)
	w.Expect(w.said(second)).To(Equal("SignerClassValid=AsExpected RootCertificatesRegenerated!WaitingForAvailable"), "the first comes first")
	w.look(first)
	former := w.secret(hostedA, pki.SREBreakGlassSigner).Data["ca.crt"]
	kept := w.secret(hostedA, first.Status.PreviousSigner.Name)
	w.Expect(kept.Data).To(Equal(map[string][]byte{"ca.crt": former}), "and not its key")

	asked := w.asks("between", "system:sre-break-glass:anna", signer)
	w.approves(hostedA, "between")
	w.passes(asked)
	w.Expect(asked.Status.Certificate).To(BeEmpty(), "it would be refused in a minute")

	var stages []string
	for range 6 {
		w.look(first)
		stages = append(stages, w.said(first))
		w.rotate()
	}
	w.look(first)
	stages = slices.Compact(append(stages, w.said(first)))
	const none, some = "SignerClassValid=AsExpected RootCertificatesRegenerated", " NewCertificatesTrusted"
	w.Expect(stages).To(Equal([]string{
		none + "!RootCertificatesStale" + some + "!WaitingForAvailable LeafCertificatesRegenerated!LeafCertificatesStale PreviousCertificatesRevoked!WaitingForAvailable",
		none + "=AsExpected" + some + "!WaitingForAvailable LeafCertificatesRegenerated!LeafCertificatesStale PreviousCertificatesRevoked!WaitingForAvailable",
		none + "=AsExpected" + some + "=AsExpected LeafCertificatesRegenerated=AsExpected PreviousCertificatesRevoked!WaitingForAvailable",
		none + "=AsExpected" + some + "=AsExpected LeafCertificatesRegenerated=AsExpected PreviousCertificatesRevoked=AsExpected",
	}))
	settled := first.ResourceVersion
	w.look(first)
	w.Expect(first.ResourceVersion).To(Equal(settled))

	w.passes(asked)
	w.Expect(asked.Status.Certificate).NotTo(BeEmpty())
	now := w.secret(hostedA, pki.SREBreakGlassSigner)
	w.Expect(now.Data["ca.crt"]).NotTo(Equal(former))
	w.look(second)
	w.Expect(supportpki.Revoking(w.secret(hostedA, pki.SREBreakGlassSigner))).To(BeTrue(), "it is the second one's turn")
}

func (w *world) revocation(name string) *certificatesv1alpha1.CertificateRevocationRequest {
	w.t.Helper()
	asked := &certificatesv1alpha1.CertificateRevocationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: hostedA, Name: name},
		Spec:       certificatesv1alpha1.CertificateRevocationRequestSpec{SignerClass: certificatesv1alpha1.SREBreakGlassSigner},
	}
	w.create(asked)
	return asked
}

func (w *world) look(asked *certificatesv1alpha1.CertificateRevocationRequest) {
	w.t.Helper()
	_, err := w.caller.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(asked)})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.client.Get(w.t.Context(), client.ObjectKeyFromObject(asked), asked)).To(Succeed())
}

// said returns the conditions in short form: = for True, and ! otherwise.
func (w *world) said(asked *certificatesv1alpha1.CertificateRevocationRequest) string {
	var words []string
	for _, t := range []string{"SignerClassValid", "RootCertificatesRegenerated", "NewCertificatesTrusted", "LeafCertificatesRegenerated", "PreviousCertificatesRevoked"} {
		for _, c := range asked.Status.Conditions {
			if c.Type == t {
				words = append(words, t+map[metav1.ConditionStatus]string{metav1.ConditionTrue: "="}[c.Status]+map[metav1.ConditionStatus]string{metav1.ConditionFalse: "!"}[c.Status]+c.Reason)
			}
		}
	}
	return strings.Join(words, " ")
}

// rotate advances the signer by one step. The controller of the HostedControlPlane does that when all pods have loaded
// the result of the previous step.
func (w *world) rotate() {
	w.t.Helper()
	secret := w.secret(hostedA, pki.SREBreakGlassSigner)
	w.Expect(supportpki.Rotation{Name: supportpki.Name{CommonName: "sre"}}.Advance(secret, true, w.now)).To(Succeed())
	w.Expect(w.client.Update(w.t.Context(), secret)).To(Succeed())
}

// TestWatches checks that each kind that the two controllers watch triggers a reconcile. The revocation that a signer's
// Secret maps to does not exist: an existing one would requeue itself, even without a watch.
func TestWatches(t *testing.T) {
	scheme, config := fixture.Scheme(), testenv.Start(t, crds.Certificates)
	testenv.NeedsServer(t, config)
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{WithT: NewWithT(t), t: t, client: c}
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}
	}
	revocation := func(name string) *certificatesv1alpha1.CertificateRevocationRequest {
		return &certificatesv1alpha1.CertificateRevocationRequest{ObjectMeta: named(name),
			Spec: certificatesv1alpha1.CertificateRevocationRequestSpec{SignerClass: certificatesv1alpha1.CustomerBreakGlassSigner}}
	}
	requests := testenv.Manage(t, config, scheme, func(mgr ctrl.Manager) error {
		mgr.GetClient().(*testenv.Requests).Listed = []client.Object{revocation("waits")}
		if err := (&Signer{Client: mgr.GetClient(), Namespace: "default", Clock: clocktesting.NewFakePassiveClock(time.Now())}).SetupWithManager(mgr); err != nil {
			return err
		}
		return (&Revoker{Client: mgr.GetClient(), Clock: clocktesting.NewFakePassiveClock(time.Now())}).SetupWithManager(mgr)
	})
	creates := func(obj client.Object) func() error { return func() error { return c.Create(t.Context(), obj) } }
	for _, tc := range []struct {
		name   string
		asked  client.Object
		change func() error
	}{
		{"When a CertificateRevocationRequest is created, it should be reconciled", revocation("new"), creates(revocation("new"))},
		{"When a signer's Secret changes, its revocations should be reconciled", revocation("waits"),
			creates(&corev1.Secret{ObjectMeta: named(pki.CustomerBreakGlassSigner)})},
		{"When a CSR is created, it should be reconciled", &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "new"}},
			func() error {
				w.asks("new", "system:customer-break-glass:a", "default.customer-break-glass")
				return nil
			}},
		{"When a CSR is approved, it should be reconciled", &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "approved"}},
			creates(&certificatesv1alpha1.CertificateSigningRequestApproval{ObjectMeta: named("approved")})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			requests.Expect(t, tc.asked, client.ObjectKeyFromObject(tc.asked), tc.change)
		})
	}
}
