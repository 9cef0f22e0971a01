// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/testenv"
)

// patience is the timeout for a program on a busy machine.
const patience = 3 * time.Minute

// TestRealServers runs the programs of the payload with the exact flags and files of their pods. Only paths are moved
// to a directory of the test, and ports to free ones.
func TestRealServers(t *testing.T) {
	cases := map[string]func(*hyperv1.HostedControlPlane){
		"minimal": func(*hyperv1.HostedControlPlane) {},
		"hardened": func(hcp *hyperv1.HostedControlPlane) {
			everything(hcp)
			hcp.Spec.AuditWebhook = nil
			hcp.Spec.Configuration.APIServer.ServingCerts = configv1.APIServerServingCerts{}
			// Separate tests cover third-party certificates.
			hcp.Spec.Configuration.Authentication.OIDCProviders[0].Issuer.CertificateAuthority.Name = ""
			hcp.Spec.Configuration.APIServer.ClientCA.Name = ""
		},
	}
	for name, edit := range cases {
		t.Run("When a control plane is "+name+" it should start with the flags of its manifests", func(t *testing.T) {
			hcp := controlPlane(edit, func(hcp *hyperv1.HostedControlPlane) { hcp.Annotations = nil })
			m := newMachine(t, hcp, secret("etcd-key", map[string][]byte{"key": bytes.Repeat([]byte{7}, 32)}))
			m.start(Kubernetes(Config{})[:4])
			m.useCluster()
		})
	}
}

// machine runs the containers of pods as processes.
type machine struct {
	t        *testing.T
	scope    *component.Scope
	root     string
	binaries string
	ports    map[string]string
	// sockets is the directory of the plugins' sockets for the API server; empty for none.
	sockets string
	// unready means that the next API server must not become ready: only the checks that do not need a plugin must
	// succeed.
	unready bool
}

func newMachine(t *testing.T, hcp *hyperv1.HostedControlPlane, objects ...client.Object) *machine {
	t.Helper()
	binaries := findBinaries(t)
	scope := newScope(hcp, objects...)
	scope.Infra.API.Host = "127.0.0.1"
	m := &machine{t: t, scope: withPKI(t, scope), root: folderWithoutComma(t), binaries: binaries, ports: map[string]string{}}
	for _, port := range []string{"2379", "2380", "2381", "6443", "10257", "10259"} {
		m.ports[port] = strconv.Itoa(testenv.FreePort(t))
	}
	return m
}

// start rolls out components one after another and runs them.
func (m *machine) start(components []*component.Component) {
	m.t.Helper()
	for _, c := range components {
		ready(m.t, m.scope, c.Dependencies...)
		if err := c.Reconcile(m.t.Context(), m.scope); err != nil {
			m.t.Fatal(err)
		}
		ready(m.t, m.scope, c.Name)
		m.run(c)
	}
}

func findBinaries(t *testing.T) string {
	t.Helper()
	for dir, _ := os.Getwd(); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "bin", "kube", "kube-scheduler")); err == nil {
			return filepath.Join(dir, "bin", "kube")
		}
	}
	t.Skip("this test needs the programs of Kubernetes: run `make kube-binaries`")
	return ""
}

// run starts the main container of a component's pod and waits until its startup and readiness probes succeed. The
// returned function stops the program, which also stops at the end of the test.
func (m *machine) run(c *component.Component) (stop func()) {
	m.t.Helper()
	p := m.launch(c)
	wait := m.waitStarted
	if m.unready {
		wait = m.waitUnready
	}
	if err := wait(p.container, p.exited); err != nil {
		p.exited <- err
		m.t.Fatalf("%s did not become ready: %v\nflags: %s\n%s", c.Name, err, strings.Join(p.args, " "), lastLines(p.output.String(), 25))
	}
	return p.stop
}

// program is the main container of a pod, as a process.
type program struct {
	container corev1.Container
	args      []string
	output    bytes.Buffer
	exited    chan error
	stop      func()
}

// launch starts the main container of a component's pod. It stops at the end of the test.
func (m *machine) launch(c *component.Component) *program {
	m.t.Helper()
	pod := m.podOf(c)
	container := pod.Containers[0]
	dirs := m.mount(pod, container)
	var args []string
	for _, arg := range container.Args {
		args = append(args, m.localize(arg, dirs))
	}
	p := startProgram(m.t, filepath.Join(m.binaries, filepath.Base(container.Command[0])), args...)
	p.container = container
	return p
}

// startProgram starts a program, which stops at the end of the test.
func startProgram(t *testing.T, path string, args ...string) *program {
	t.Helper()
	p := &program{args: args, exited: make(chan error, 1)}
	ctx, cancel := context.WithCancelCause(context.Background())
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = &p.output, &p.output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.exited <- cmd.Wait() }()
	p.stop = sync.OnceFunc(func() {
		cancel(errors.New("the test ended"))
		<-p.exited
	})
	t.Cleanup(p.stop)
	return p
}

func (m *machine) podOf(c *component.Component) corev1.PodSpec {
	m.t.Helper()
	obj, err := c.Render(m.t.Context(), m.scope)
	if err != nil {
		m.t.Fatal(err)
	}
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return o.Spec.Template.Spec
	case *appsv1.StatefulSet:
		return o.Spec.Template.Spec
	default:
		m.t.Fatalf("component %s is a %T", c.Name, obj)
		return corev1.PodSpec{}
	}
}

// mount writes the pod's volumes to directories and returns the directory of each mount path.
func (m *machine) mount(pod corev1.PodSpec, container corev1.Container) map[string]string {
	m.t.Helper()
	dirs := map[string]string{}
	for _, vm := range container.VolumeMounts {
		dir := filepath.Join(m.root, container.Name, vm.Name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			m.t.Fatal(err)
		}
		// The test's own directory is below /tmp, so that path must not be moved.
		if vm.MountPath != "/tmp" {
			dirs[vm.MountPath] = dir
		}
		for _, v := range pod.Volumes {
			if v.Name == vm.Name {
				m.fill(dir, v)
			}
		}
	}
	return dirs
}

func (m *machine) fill(dir string, v corev1.Volume) {
	m.t.Helper()
	files := map[string][]byte{}
	switch {
	case v.Secret != nil:
		s := &corev1.Secret{}
		m.get(v.Secret.SecretName, s)
		files = s.Data
	case v.ConfigMap != nil:
		cm := &corev1.ConfigMap{}
		m.get(v.ConfigMap.Name, cm)
		for key, value := range cm.Data {
			files[key] = []byte(value)
		}
	}
	for name, content := range files {
		if m.sockets != "" {
			content = bytes.ReplaceAll(content, []byte("unix:///var/run/kms/"), []byte("unix://"+m.sockets+"/"))
		}
		text := m.localize(m.localizeEtcd(string(content)), map[string]string{"/etc/kubernetes/kubeconfig": filepath.Join(filepath.Dir(dir), "kubeconfig")})
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			m.t.Fatal(err)
		}
	}
}

func (m *machine) get(name string, obj client.Object) {
	m.t.Helper()
	if err := m.scope.Client.Get(m.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		m.t.Fatal(err)
	}
}

// localizeEtcd changes the configuration file of an etcd member to the local machine.
func (m *machine) localizeEtcd(text string) string {
	if !strings.Contains(text, "initial-cluster-state:") {
		return text
	}
	text = strings.ReplaceAll(text, "0.0.0.0", "127.0.0.1")
	text = strings.ReplaceAll(text, "/etc/etcd/tls/server/", filepath.Join(m.root, "etcd", "server-tls")+"/")
	text = strings.ReplaceAll(text, "/etc/etcd/tls/peer/", filepath.Join(m.root, "etcd", "peer-tls")+"/")
	text = strings.ReplaceAll(text, "/etc/etcd/tls/etcd-ca/", filepath.Join(m.root, "etcd", "etcd-ca")+"/")
	return strings.ReplaceAll(text, "/var/lib/data", filepath.Join(m.root, "etcd", "data"))
}

// portNumber matches a port after a host name, or the value of the flag --secure-port.
var portNumber = regexp.MustCompile(`:\d+\b|^--secure-port=\d+$`)

// localize replaces paths, names and ports of the pod with their equivalents on the local machine.
func (m *machine) localize(text string, dirs map[string]string) string {
	if strings.HasPrefix(text, "--listen-") {
		text = strings.Replace(text, "0.0.0.0", "127.0.0.1", 1)
	}
	for path, dir := range dirs {
		text = strings.ReplaceAll(text, "="+path+"/", "="+dir+"/")
		text = strings.ReplaceAll(text, ","+path+"/", ","+dir+"/")
		text = strings.ReplaceAll(text, `"`+path+"/", `"`+dir+"/")
		if strings.HasSuffix(text, "="+path) {
			text = strings.TrimSuffix(text, path) + dir
		}
	}
	// All ports change at once: a local port may contain the number of another port of the pod.
	text = portNumber.ReplaceAllStringFunc(text, func(found string) string {
		if local, ok := m.ports[found[strings.IndexAny(found, ":=")+1:]]; ok {
			return strings.TrimRight(found, "0123456789") + local
		}
		return found
	})
	text = strings.ReplaceAll(text, "$(POD_NAME)", "etcd-0")
	text = strings.ReplaceAll(text, "https://kube-apiserver:", "https://localhost:")
	return strings.ReplaceAll(text, "https://etcd-client."+namespace+".svc:", "https://localhost:")
}

func (m *machine) waitStarted(container corev1.Container, exited <-chan error) error {
	if err := m.waitReady(container, container.StartupProbe, exited); err != nil {
		return err
	}
	return m.waitReady(container, container.ReadinessProbe, exited)
}

// waitUnready waits until the program answers its startup probe, and expects a failure.
func (m *machine) waitUnready(container corev1.Container, exited <-chan error) error {
	if err := m.waitReady(container, container.LivenessProbe, exited); err != nil {
		return err
	}
	port := m.ports[fmt.Sprint(container.Ports[0].ContainerPort)]
	httpClient := &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := httpClient.Get("https://127.0.0.1:" + port + container.StartupProbe.HTTPGet.Path)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return errors.New("it counts as started without its plugin")
	}
	return nil
}

// waitReady waits until a probe succeeds, if there is one.
func (m *machine) waitReady(container corev1.Container, of *corev1.Probe, exited <-chan error) error {
	if of == nil || of.HTTPGet == nil {
		return nil
	}
	probe := of.HTTPGet
	scheme := strings.ToLower(string(probe.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	var port string
	for _, p := range container.Ports {
		if p.Name == probe.Port.StrVal {
			port = m.ports[fmt.Sprint(p.ContainerPort)]
		}
	}
	httpClient := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	return wait.PollUntilContextTimeout(m.t.Context(), 200*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		select {
		case err := <-exited:
			return false, fmt.Errorf("it exited: %w", errors.Join(err, errors.New("see its output")))
		default:
		}
		response, err := httpClient.Get(scheme + "://127.0.0.1:" + port + probe.Path)
		if err != nil {
			return false, nil //nolint:nilerr // It does not serve yet.
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK, nil
	})
}

// guestConfig returns the access of the guest's administrator.
func (m *machine) guestConfig() *rest.Config {
	m.t.Helper()
	kubeconfig := &corev1.Secret{}
	m.get(pki.ServiceNetworkKubeconfig, kubeconfig)
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(m.localize(string(kubeconfig.Data["kubeconfig"]), nil)))
	if err != nil {
		m.t.Fatal(err)
	}
	return config
}

// useCluster checks that the four programs work together: a Deployment's pod is created and only waits for a node.
func (m *machine) useCluster() {
	m.t.Helper()
	guest := kubernetes.NewForConfigOrDie(m.guestConfig())
	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}
	if _, err := guest.AppsV1().Deployments("default").Create(m.t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		m.t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(m.t.Context(), 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		pods, err := guest.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil || len(pods.Items) == 0 {
			return false, nil //nolint:nilerr // The request is repeated.
		}
		for _, c := range pods.Items[0].Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		m.t.Fatalf("the guest's controllers and scheduler did not handle a Deployment: %v", err)
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// folderWithoutComma returns a temporary folder. t.TempDir contains the name of the subtest, whose comma would end the
// path in flags that list files.
func folderWithoutComma(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "control-plane-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}
