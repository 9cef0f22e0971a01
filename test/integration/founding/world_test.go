// SPDX-License-Identifier: Apache-2.0

// Package founding runs the command lines and manifests of the documents that the product grew from, as they are
// written there. docs/reference/from-the-fork.md lists what is different.
package founding

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/cmd/root"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/webhook"
	"github.com/openshift/hypershift/support/operatorwebhook"
	"github.com/openshift/hypershift/support/readthrough"
	"github.com/openshift/hypershift/support/testenv"
)

const (
	apiKey         = "consumer:token:sesame"
	defaultRelease = "quay.io/okd/scos-release:4.20.0"
	patience       = 3 * time.Minute
)

// world is a management cluster and the folder in which its user works.
type world struct {
	*GomegaWithT
	t        *testing.T
	config   *rest.Config
	client   client.Client
	testdata string

	mu       sync.Mutex
	warnings []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{GomegaWithT: NewWithT(t), t: t, config: testenv.Start(t)}
	testdata, err := filepath.Abs("testdata")
	w.Expect(err).NotTo(HaveOccurred())
	w.testdata = testdata
	watched := rest.CopyConfig(w.config)
	watched.WarningHandler = w
	w.client, err = client.New(watched, client.Options{Scheme: fixture.Scheme()})
	w.Expect(err).NotTo(HaveOccurred())

	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("KUBECONFIG", filepath.Join(dir, "kubeconfig"))
	w.Expect(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: w.config.Host, CertificateAuthorityData: w.config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: w.config.CertData, ClientKeyData: w.config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, "kubeconfig")).To(Succeed())
	for name, text := range map[string]string{
		"pull-secret.json": `{"auths":{"quay.io":{"auth":"dTpw"}}}`, "test_id_rsa.pub": "ssh-ed25519 AAAA someone\n",
	} {
		w.Expect(os.WriteFile(name, []byte(text), 0o600)).To(Succeed())
	}
	return w
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *world) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warnings = append(w.warnings, text)
}

// outcome is the visible result of a command.
type outcome struct {
	code   int
	stderr string
}

// types runs a command line of testdata/commands, with further flags. "<key>" stands for the API key.
func (w *world) types(name string, more ...string) outcome {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.testdata, "commands", name+".txt"))
	w.Expect(err).NotTo(HaveOccurred())
	words := strings.Fields(strings.NewReplacer("\\\n", " ", "<key>", apiKey).Replace(string(text)))
	w.Expect(words[0]).To(Equal("hypershift"))
	var stdout, stderr bytes.Buffer
	cmd := root.Hypershift()
	cmd.SetIn(strings.NewReader(""))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(append(words[1:], more...))
	o := outcome{root.Run(w.t.Context(), cmd, &stderr), stderr.String()}
	w.Expect(stdout.String()+o.stderr).NotTo(ContainSubstring("sesame"), "no output has the key")
	return o
}

// succeeds runs a command line that must succeed, and returns its standard error.
func (w *world) succeeds(name string, more ...string) string {
	w.t.Helper()
	o := w.types(name, more...)
	w.Expect(o.code).To(Equal(0), o.stderr)
	return o.stderr
}

// applies applies a file of testdata/manifests as a user does, and returns the warnings. The namespace is for objects
// without one.
func (w *world) applies(name, namespace string) ([]string, error) {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.testdata, "manifests", name+".yaml"))
	w.Expect(err).NotTo(HaveOccurred())
	obj := &unstructured.Unstructured{}
	w.Expect(yaml.Unmarshal(text, &obj.Object)).To(Succeed())
	if obj.GetNamespace() == "" {
		obj.SetNamespace(namespace)
	}
	err = w.client.Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: obj.GetNamespace()}})
	w.Expect(client.IgnoreAlreadyExists(err)).To(Succeed())
	w.mu.Lock()
	w.warnings = nil
	w.mu.Unlock()
	err = w.client.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("kubectl"), client.ForceOwnership)
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.warnings), err
}

func (w *world) gets(obj client.Object, namespace, name string) {
	w.t.Helper()
	w.Expect(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj)).To(Succeed())
}

// readyNode creates a node of the management cluster.
func (w *world) readyNode(address string) {
	w.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "management"}}
	w.Expect(w.client.Create(w.t.Context(), node)).To(Succeed())
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	w.Expect(w.client.Status().Update(w.t.Context(), node)).To(Succeed())
}

// storage creates the default StorageClass of the management cluster, for etcd's volumes.
func (w *world) storage() {
	w.t.Helper()
	w.Expect(w.client.Create(w.t.Context(), &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: "standard", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: "example.com/disk",
	})).To(Succeed())
}

// serves runs the operator's webhook in this process, in place of the installed pod.
func (w *world) serves() {
	w.t.Helper()
	ctx, port := w.t.Context(), testenv.FreePort(w.t)
	installed := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.OperatorNamespace, Name: operatorwebhook.Service}}
	w.Expect(w.client.Delete(ctx, installed)).To(Succeed())
	w.Expect(w.client.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: fixture.OperatorNamespace, Name: operatorwebhook.Service},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	})).To(Succeed())
	hooks := &admissionv1.MutatingWebhookConfiguration{}
	w.gets(hooks, "", operatorwebhook.Name)
	for i := range hooks.Webhooks {
		hooks.Webhooks[i].ClientConfig.Service.Port = ptr.To(int32(port))
		// The API server ignores a late answer; a busy machine needs the maximum timeout.
		hooks.Webhooks[i].TimeoutSeconds = ptr.To[int32](30)
	}
	w.Expect(w.client.Update(ctx, hooks)).To(Succeed())
	mgr, err := ctrl.NewManager(w.config, ctrl.Options{
		Scheme: fixture.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, NewClient: readthrough.NewClient(client.New, &corev1.Secret{}),
	})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(webhook.Setup(mgr, webhook.Options{
		Namespace: fixture.OperatorNamespace, Port: port, Defaults: true, DefaultRelease: defaultRelease, Clock: clock.RealClock{},
	})).To(Succeed())
	testenv.Run(w.t, mgr)
}
