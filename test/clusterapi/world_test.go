// SPDX-License-Identifier: Apache-2.0

// Package clusterapi tests Cluster API's own managers, in the versions of the release payloads. They run on the CRDs
// that the installer applies and on the objects that the operator creates.
package clusterapi

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/webhook"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/operatorwebhook"
	"github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/testenv"
)

const (
	operatorNamespace = "hypershift"
	namespace         = "clusters-demo"
	cluster           = "demo"
	image             = "custom/node-image"
	userData          = "user-data"
	patience          = 8 * time.Minute // A manager takes minutes if other tests and an environment run at the same time.
	tick              = 250 * time.Millisecond
)

// world is a fixture: a management cluster with a hosted cluster. The same API server is also the guest cluster, so
// that a manager finds the nodes there.
type world struct {
	*WithT
	t          *testing.T
	config     *rest.Config
	client     client.Client
	kubeconfig string
	certDir    string
	// port is the port of the conversion webhook.
	port int
	// infrastructure runs before each check of the machines. The default is provide; tests with a real provider
	// replace it.
	infrastructure func(context.Context, Gomega)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t), t: t, config: testenv.Start(t, crds.HyperShift, crds.ClusterAPI, crds.Infrastructure), certDir: t.TempDir()}
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, clusterv1beta1.AddToScheme,
		infrav1.AddToScheme, hyperv1.AddToScheme)
	w.Expect(builder.AddToScheme(scheme)).To(Succeed())
	var err error
	w.client, err = client.New(w.config, client.Options{Scheme: scheme})
	w.Expect(err).NotTo(HaveOccurred())
	w.writeKubeconfig()
	w.writeCertificate()
	w.port, w.infrastructure = testenv.FreePort(w.t), w.provide
	w.askForConversion()
	return w
}

// in returns the fixture for a subtest.
func (w *world) in(t *testing.T) *world {
	stage := *w
	stage.WithT, stage.t = NewWithT(t), t
	return &stage
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, obj := range objects {
		w.Expect(w.client.Create(w.t.Context(), obj)).To(Succeed())
	}
}

func (w *world) writeKubeconfig() {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: w.config.Host, CertificateAuthorityData: w.config.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: w.config.CertData, ClientKeyData: w.config.KeyData}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	w.kubeconfig = filepath.Join(w.t.TempDir(), "kubeconfig")
	w.Expect(clientcmd.WriteToFile(*config, w.kubeconfig)).To(Succeed())
}

// writeCertificate writes a certificate, because the managers' webhook servers do not start without one. The API
// server does not call those servers.
func (w *world) writeCertificate() {
	ca, err := pki.NewCA(pki.Name{CommonName: "test"}, time.Now())
	w.Expect(err).NotTo(HaveOccurred())
	pair, err := ca.Issue(pki.Leaf{Name: pki.Name{CommonName: "test"}, Server: true, Hosts: []string{"localhost"}}, pki.Lifetime{}, time.Now())
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(os.WriteFile(filepath.Join(w.certDir, "tls.crt"), pair.CertPEM, 0o600)).To(Succeed())
	w.Expect(os.WriteFile(filepath.Join(w.certDir, "tls.key"), pair.KeyPEM, 0o600)).To(Succeed())
}

// askForConversion configures the conversion webhook in the CRDs, as the installer does. The operator's Service leads
// to this process.
func (w *world) askForConversion() {
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}}, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: operatorwebhook.Service},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	})
	for _, name := range crds.Names(crds.ClusterAPI) {
		w.Eventually(func(g Gomega) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			g.Expect(w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, crd)).To(Succeed())
			operatorwebhook.Convert(crd, operatorNamespace)
			crd.Spec.Conversion.Webhook.ClientConfig.Service.Port = ptr.To(int32(w.port))
			g.Expect(w.client.Update(w.t.Context(), crd)).To(Succeed())
		}, patience, tick).Should(Succeed())
	}
}

// operator runs the conversion webhook until the test ends or stop is called.
func (w *world) operator() (stop func()) {
	w.t.Helper()
	mgr, err := ctrl.NewManager(w.config, ctrl.Options{
		Scheme: w.client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: controllerconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(webhook.Setup(mgr, webhook.Options{Namespace: operatorNamespace, Port: w.port, Clock: clock.RealClock{}})).To(Succeed())
	return testenv.Run(w.t, mgr)
}

// manager runs one of Cluster API's own managers until the test ends or stop is called.
func (w *world) manager(binary string) (stop func()) {
	w.t.Helper()
	return w.process(binary, nil,
		"--kubeconfig", w.kubeconfig, "--namespace", namespace, "--leader-elect=false", "--webhook-cert-dir", w.certDir,
		"--webhook-port", strconv.Itoa(testenv.FreePort(w.t)), "--health-addr", "localhost:"+strconv.Itoa(testenv.FreePort(w.t)), "--diagnostics-address", "localhost:0",
	)
}

// process runs a program until the test ends or stop is called. env is added to the environment of this process.
func (w *world) process(binary string, env []string, args ...string) (stop func()) {
	w.t.Helper()
	log, err := os.Create(filepath.Join(w.t.TempDir(), "log"))
	w.Expect(err).NotTo(HaveOccurred())
	// The function stop ends the process: the context of a test ends before its clean-ups, and would kill the process
	// before it can shut down.
	cmd := exec.CommandContext(context.WithoutCancel(w.t.Context()), binary, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	w.Expect(cmd.Start()).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			w.t.Errorf("%s ended by itself: %v", binary, err)
		}
		<-ended
		if w.t.Failed() {
			w.t.Logf("%s:\n%s", binary, tail(log.Name()))
		}
	}
	w.t.Cleanup(stop)
	return stop
}

func tail(file string) string {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(raw), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}
