// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/lifecycle"
)

// patience is the timeout for one operation of the environment, on a machine that runs other tests in parallel.
const patience = 5 * time.Minute

// built is the folder of the built programs.
const built = "../../bin"

// whole is an environment of this test, run by the built program.
type whole struct {
	env.Env
	t *testing.T
}

// newWhole returns an environment. It skips the test on a machine that cannot run one, or already runs one.
func newWhole(t *testing.T) *whole {
	t.Helper()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	// `make test` sets a fixed folder, so that its next run removes what a killed run left there.
	dir := cmp.Or(os.Getenv(env.DirVariable), filepath.Join(t.TempDir(), "env"))
	e, err := env.New(dir, built)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	if err := (&lifecycle.Environment{Env: e}).Startable(t.Context()); err != nil {
		t.Skip(err)
	}
	w := &whole{Env: e, t: t}
	t.Cleanup(w.cleanUp)
	return w
}

// cleanUp prints what may explain a failure before it removes the environment.
func (w *whole) cleanUp() {
	ctx := context.WithoutCancel(w.t.Context())
	if w.t.Failed() {
		status, _ := exec.CommandContext(ctx, w.Program("devcluster"), "status", "--dir", w.Dir).CombinedOutput()
		w.t.Logf("status of the environment:\n%s", status)
	}
	out, err := exec.CommandContext(ctx, w.Program("devcluster"), "down", "--dir", w.Dir).CombinedOutput()
	NewWithT(w.t).Expect(err).NotTo(HaveOccurred(), string(out))
}

func (w *whole) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.t.Context(), w.Program("devcluster"), append(args, "--dir", w.Dir)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd
}

func (w *whole) run(g Gomega, args ...string) string {
	out, err := w.command(args...).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	return string(out)
}

func (w *whole) kubectl(stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(w.t.Context(), filepath.Join(w.Bin, "kube", "kubectl"), append([]string{"--kubeconfig", w.Kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// untraced checks that nothing of the environment is left.
func (w *whole) untraced(g Gomega) {
	for _, path := range []string{w.Dir, "/run/netns/" + env.Namespace, "/run/netns/" + env.Namespace + "2", "/run/hypershift-maas.dir"} {
		g.Expect(path).NotTo(BeAnExistingFile())
	}
	_, err := net.InterfaceByName(env.HostLink)
	g.Expect(err).To(HaveOccurred(), "the network interface %s must be gone", env.HostLink)
	for _, hierarchy := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		g.Expect(filepath.Glob(hierarchy + "hypershift-maas/" + env.Namespace)).To(BeEmpty())
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range commands {
		line, err := os.ReadFile(file)
		if err == nil {
			g.Expect(string(line)).NotTo(ContainSubstring(w.Dir))
		}
	}
}

const workload = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
      containers: [{name: web, image: IMAGE, volumeMounts: [{name: data, mountPath: /data}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]}
`

// page fetches the workload's page from the host.
func page() (string, error) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + env.Gateway + ":30080/")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

func TestEnvironment(t *testing.T) {
	g := NewWithT(t)
	w := newWhole(t)
	w.run(g, "up", "--without-maas")

	// Check what a control plane needs of its cluster: images of the registry, volumes, Services, DNS, logs, exec,
	// NodePorts.
	image := strings.TrimSpace(w.run(g, "images", "list", "web"))
	_, err := w.kubectl(strings.ReplaceAll(workload, "IMAGE", image), "apply", "-f", "-")
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(page, patience).Should(HavePrefix("Hello from web-"))
	g.Eventually(func() (string, error) {
		return w.kubectl("", "exec", "deploy/web", "--", "fetch", "http://web.default")
	}, patience).
		Should(ContainSubstring("Hello from web-"))
	g.Eventually(func() (string, error) { return w.kubectl("", "logs", "deploy/web") }, patience).Should(ContainSubstring("GET /"))
	volumes, err := filepath.Glob(filepath.Join(w.Management(), "root/var/lib/volumes/*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(volumes).To(HaveLen(1))
	w.keeps(g)

	// A second run changes nothing, and a run in another folder is rejected before it changes anything.
	w.run(g, "up", "--without-maas")
	elsewhere := &whole{Env: env.Env{Dir: filepath.Join(t.TempDir(), "other"), Bin: w.Bin}, t: t}
	out, err := elsewhere.command("up").CombinedOutput()
	g.Expect(err).To(HaveOccurred())
	g.Expect(string(out)).To(ContainSubstring(w.Dir))
	g.Expect(elsewhere.Dir).NotTo(BeADirectory())

	// The management machine loses its power: up restarts it, and no written data is lost.
	g.Expect(syscall.Kill(managementPID(g, w), syscall.SIGKILL)).To(Succeed())
	w.run(g, "up", "--without-maas")
	g.Eventually(page, patience).Should(HavePrefix("Hello from web-"))
	g.Expect(volumes[0]).To(BeADirectory())
	w.kept(g)

	w.run(g, "down")
	g.Eventually(w.untraced, patience).Should(Succeed())
	w.run(g, "down")
}

// oneEach is a workload with a pod on each node, each of which has a volume, and one Service.
const oneEach = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: 3
  podManagementPolicy: Parallel
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
      containers: [{name: web, image: IMAGE, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]}
`

func TestNodes(t *testing.T) {
	g := NewWithT(t)
	w := newWhole(t)
	w.run(g, "up", "--without-maas", "--nodes", "3")
	image := strings.TrimSpace(w.run(g, "images", "list", "web"))
	_, err := w.kubectl(strings.ReplaceAll(oneEach, "IMAGE", image), "apply", "-f", "-")
	g.Expect(err).NotTo(HaveOccurred())
	ready := func() (string, error) {
		return w.kubectl("", "get", "statefulset", "web", "-o", "jsonpath={.status.readyReplicas}")
	}
	g.Eventually(ready, patience).Should(Equal("3"))
	nodes, err := w.kubectl("", "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.nodeName}")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Fields(nodes)).To(ConsistOf("management", "management-2", "management-3"), "a pod in each zone")
	volumes, err := filepath.Glob(filepath.Join(w.Dir, "management*", "root/var/lib/volumes/*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(volumes).To(HaveLen(3), "each volume is where its pod is")

	// Every pod reaches every other pod, and a node port leads to all pods.
	addresses, err := w.kubectl("", "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].status.podIP}")
	g.Expect(err).NotTo(HaveOccurred())
	for _, pod := range []string{"web-0", "web-1", "web-2"} {
		for _, address := range strings.Fields(addresses) {
			g.Eventually(func() (string, error) { return w.kubectl("", "exec", pod, "--", "fetch", "http://"+address+":8080") }, patience).
				Should(ContainSubstring("Hello from web-"))
		}
		g.Eventually(page, patience).Should(HavePrefix("Hello from "+pod), "by way of the first node's port")
	}

	// A node that loses its power restarts with its disk, and a disconnected node is unreachable.
	w.run(g, "node", "stop", "management-3")
	g.Expect(filepath.Join(w.Dir, "management-3", "root/var/lib/volumes")).To(BeADirectory())
	w.run(g, "node", "start", "management-3")
	w.run(g, "node", "cut", "management-2")
	g.Expect(dialNode("172.30.240.2:10250")).NotTo(Succeed())
	w.run(g, "node", "mend", "management-2")
	g.Eventually(func() error { return dialNode("172.30.240.2:10250") }, patience).Should(Succeed())
	g.Eventually(func() error { return dialNode("172.30.240.3:10250") }, patience).Should(Succeed())
	out, err := w.command("node", "stop", "management").CombinedOutput()
	g.Expect(err).To(HaveOccurred())
	g.Expect(string(out)).To(ContainSubstring("is the control plane"))
	w.run(g, "down")
	g.Eventually(w.untraced, patience).Should(Succeed())
}

// dialNode tries to reach a port of a node from the host.
func dialNode(address string) error {
	connection, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	return connection.Close()
}

func managementPID(g Gomega, w *whole) int {
	data, err := os.ReadFile(filepath.Join(w.Management(), "machine.json"))
	g.Expect(err).NotTo(HaveOccurred())
	var state struct{ PID int }
	g.Expect(json.Unmarshal(data, &state)).To(Succeed())
	return state.PID
}

func TestInterruptedUp(t *testing.T) {
	g := NewWithT(t)
	w := newWhole(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	up := exec.CommandContext(ctx, w.Program("devcluster"), "up", "--without-maas", "--dir", w.Dir)
	out, err := up.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(up.Start()).To(Succeed())
	line, err := bufio.NewReader(out).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(line).To(ContainSubstring("management machine"))
	g.Expect(up.Process.Signal(os.Interrupt)).To(Succeed())
	g.Expect(up.Wait()).To(HaveOccurred())

	w.run(g, "down")
	g.Eventually(w.untraced, patience).Should(Succeed())
}
