// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cmd/capacity"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/platform"
)

// browser is the program of test/browser.
type browser struct {
	in      io.Writer
	answers *bufio.Reader
}

// startBrowser starts the program that HYPERSHIFT_BROWSER names; `make test-console` builds it.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	program := os.Getenv("HYPERSHIFT_BROWSER")
	if program == "" {
		t.Skip("HYPERSHIFT_BROWSER is not set: make test-console runs this test")
	}
	found := false
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		_, err := exec.LookPath(name)
		found = found || err == nil
	}
	if !found {
		t.Skip("no browser is installed: apt-get install chromium")
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	b := &browser{in: in, answers: bufio.NewReader(out)}
	b.answer(t, "start")
	return b
}

func (b *browser) answer(t *testing.T, command string) {
	t.Helper()
	line, err := b.answers.ReadString('\n')
	if err != nil || line != "ok\n" {
		t.Fatalf("%s: %s %v", command, line, err)
	}
}

func (b *browser) do(t *testing.T, format string, args ...any) {
	t.Helper()
	command := fmt.Sprintf(format, args...)
	if _, err := fmt.Fprintln(b.in, command); err != nil {
		t.Fatal(err)
	}
	b.answer(t, command)
}

// rackSite returns clusters with a number of machines each, in three zones and two resource pools.
func rackSite(clusters []string, each int) []client.Object {
	var objects []client.Object
	for _, name := range clusters {
		hc := siteCluster(name)
		objects = append(objects, hc, sitePool(name, each, name == clusters[1]))
		for i := range each {
			objects = append(objects, siteMachine(name, i)...)
		}
	}
	return objects
}

// spareSite reports machines that no cluster has: most are spare, each sixth is quarantined.
func spareSite(count int) siteOf {
	report := &capacity.Report{Endpoint: "https://maas.example:5443/MAAS", Needs: []capacity.Need{
		{NodePool: "clusters/search-workers", Nodes: "16/16", Fit: count - count/6,
			Reason: "machines with 16 cores in pool default"},
	}}
	for i := range count {
		m := capacity.Machine{
			Hostname: fmt.Sprintf("spare-%02d", i), SystemID: fmt.Sprintf("spare%d", i), Zone: fmt.Sprintf("az%d", i%3+1),
			Pool: "default", Status: "Ready", State: capacity.Fit,
		}
		if i%6 == 5 {
			m.State = capacity.Quarantined
		}
		report.Machines = append(report.Machines, m)
	}
	return siteOf{platform.Console(), "", report}
}

func siteCluster(name string) *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name}}
	hc.Spec.Platform.Type = hyperv1.MAASPlatform
	hc.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "10.0.0.9", Port: 6443}
	hc.Status.Version = &hyperv1.ClusterVersionStatus{
		Desired: configv1.Release{Version: "1.36.3"},
		History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "1.36.3"}},
	}
	hc.Status.Conditions = []metav1.Condition{{Type: "Available", Status: "True", Reason: "AsExpected"}}
	return hc
}

func sitePool(name string, replicas int, updates bool) *hyperv1.NodePool {
	pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name + "-workers"}}
	pool.Spec.ClusterName, pool.Spec.Replicas = name, ptr.To(int32(replicas))
	pool.Status.Replicas, pool.Status.Version = int32(replicas), "1.36.3"
	pool.Status.Conditions = []hyperv1.NodePoolCondition{{Type: "Ready", Status: "True", Reason: "AsExpected"}}
	if updates {
		pool.Status.Version = "1.35.4"
		pool.Status.Conditions = append(pool.Status.Conditions, hyperv1.NodePoolCondition{
			Type: hyperv1.NodePoolUpdatingVersionConditionType, Status: corev1.ConditionTrue, Reason: "AsExpected",
			Message: "updating to 1.36.3",
		})
	}
	return pool
}

func siteMachine(cluster string, i int) []client.Object {
	name := fmt.Sprintf("%s-%02d", cluster, i)
	meta := metav1.ObjectMeta{Namespace: kube.HostedNamespace("clusters", cluster), Name: name}
	m, maas := &clusterv1.Machine{ObjectMeta: meta}, &infrav1.MaasMachine{ObjectMeta: meta}
	m.Annotations = map[string]string{hyperv1.NodePoolAnnotation: "clusters/" + cluster + "-workers"}
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "MaasMachine", Name: name}
	m.Spec.Version, m.Status.Phase = "v1.36.3", string(clusterv1.MachinePhaseRunning)
	maas.Spec.SystemID, maas.Spec.ResourcePool = ptr.To(name), ptr.To([]string{"default", "gpu"}[i/3%2])
	maas.Status.Hostname, maas.Status.Zone = ptr.To(name), fmt.Sprintf("az%d", i%3+1)
	switch {
	case i%11 == 7:
		m.Status.Phase = string(clusterv1.MachinePhaseProvisioning)
		m.Spec.Version = "v1.35.4"
	case i%17 == 5:
		maas.Status.Conditions = []metav1.Condition{{
			Type: "Ready", Status: "False", Reason: "MachineFailed", Message: "the power of the machine cannot be read; check its BMC",
		}}
	}
	return []client.Object{m, maas}
}

// TestBrowser checks the page in headless Chromium. It writes docs/images/console.png if HYPERSHIFT_PICTURE is set.
func TestBrowser(t *testing.T) {
	b := startBrowser(t)
	picture := filepath.Join(t.TempDir(), "console.png")
	if os.Getenv("HYPERSHIFT_PICTURE") != "" {
		picture = filepath.Join("..", "..", "docs", "images", "console.png")
	}
	tiles := func(count int) string {
		return fmt.Sprintf(`document.querySelectorAll(".tile").length === %d`, count)
	}
	t.Run("shows a site, its details and a change within 2 s", func(t *testing.T) {
		g := NewWithT(t)
		s := serveSite(t, spareSite(12), interceptor.Funcs{}, rackSite([]string{"payments", "search", "video"}, 16)...)
		s.stream(t)(machines(60))
		b.do(t, "open %s", s.url)
		b.do(t, "until %s", tiles(60))
		b.do(t, `until document.getElementById("connection").textContent === "Live"`)
		b.do(t, `until location.hash === ""`)
		b.do(t, `until document.querySelectorAll(".tile.quarantined").length === 2`)
		b.do(t, `until document.querySelector("progress[aria-label='Upgrade of clusters/search-workers']").value > 0`)
		b.do(t, "picture %s", picture)
		b.do(t, `key [data-id="clusters-payments/payments-00"] ArrowRight`)
		b.do(t, `until document.activeElement.dataset.id === "clusters-payments/payments-06"`)
		b.do(t, `key [data-id="clusters-payments/payments-00"] Enter`)
		b.do(t, `until document.getElementById("details").open && `+
			`document.getElementById("details-list").textContent.includes("MaasMachine clusters-payments/payments-00")`)
		b.do(t, "key #details Escape")
		m := siteMachine("video", 0)[0]
		g.Expect(s.client.Delete(t.Context(), m)).To(Succeed())
		b.do(t, "until %s", tiles(59))
		b.do(t, "scheme dark")
		b.do(t, `until matchMedia("(prefers-color-scheme: dark)").matches && `+
			`getComputedStyle(document.body).backgroundColor === "rgb(20, 23, 28)"`)
		b.do(t, "scheme light")
		b.do(t, "requests")
	})
	t.Run("shows hostile names as text", func(t *testing.T) {
		objects := rackSite([]string{"a", "b"}, 1)
		for _, object := range objects {
			if m, ok := object.(*infrav1.MaasMachine); ok {
				m.Status.Hostname = ptr.To(`<img src=x onerror="document.title='taken'">`)
			}
		}
		s := serve(t, interceptor.Funcs{}, objects...)
		s.stream(t)(machines(2))
		b.do(t, "open %s", s.url)
		b.do(t, "until %s", tiles(2))
		b.do(t, `until document.querySelectorAll("#site img").length === 0 && document.title === "HyperShift console" && `+
			`document.getElementById("site").textContent.includes("<img src=x")`)
	})
	t.Run("shows 1,000 machines", func(t *testing.T) {
		s := serve(t, interceptor.Funcs{}, rackSite(strings.Fields("a b c d e"), 200)...)
		s.stream(t)(machines(1000))
		started := time.Now()
		b.do(t, "open %s", s.url)
		b.do(t, "until %s", tiles(1000))
		t.Logf("1,000 machines are shown %s after the page was opened", time.Since(started).Round(time.Millisecond))
	})
}
