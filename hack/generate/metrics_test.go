// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/support/metrics"
)

// ours matches the names of our metrics.
var ours = regexp.MustCompile(`\b(\w+:)?(hypershift|capmaas|maas_client|ign_server)_\w+(:\w+)?`)

// series returns the names under which Prometheus stores our metrics.
func series(g Gomega) map[string]bool {
	all := map[string]bool{}
	for _, p := range programs() {
		families, err := metrics.Families(p.collectors...)
		g.Expect(err).NotTo(HaveOccurred())
		for _, f := range families {
			if f.Type == "histogram" {
				for _, suffix := range []string{"_bucket", "_sum", "_count"} {
					all[f.Name+suffix] = true
				}
				continue
			}
			all[f.Name] = true
		}
	}
	return all
}

// installed is what `install --monitoring` writes: expressions, names of recorded series, and links of alerts.
type installed struct {
	expressions, runbooks []string
	recorded              map[string]bool
	dashboards            int
}

const runbookRoot = "https://docs.example.com"

func installs(ctx context.Context, g Gomega) installed {
	cmd := exec.CommandContext(ctx, "go", "run", "./cmd/hypershift", "install", "render", "--outputs", "resources",
		"--monitoring", "--runbook-url", runbookRoot, "--hypershift-image", "r/h:1")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	g.Expect(err).NotTo(HaveOccurred())
	all := installed{recorded: map[string]bool{}}
	for document := range strings.SplitSeq(string(out), "\n---\n") {
		var kind struct{ Kind string }
		g.Expect(yaml.Unmarshal([]byte(document), &kind)).To(Succeed())
		switch kind.Kind {
		case "PrometheusRule":
			all.addRules(g, document)
		case "ConfigMap":
			all.addDashboards(g, document)
		}
	}
	return all
}

func (i *installed) addRules(g Gomega, document string) {
	var rule monitoringv1.PrometheusRule
	g.Expect(yaml.Unmarshal([]byte(document), &rule)).To(Succeed())
	for _, group := range rule.Spec.Groups {
		for _, r := range group.Rules {
			if r.Record != "" {
				i.recorded[r.Record] = true
			}
			if r.Alert == "" && rule.Name == "metrics" {
				continue // These rules also read metrics of Kubernetes.
			}
			i.expressions = append(i.expressions, r.Expr.String())
			if r.Alert == "" {
				continue
			}
			g.Expect(r.Annotations).To(And(HaveKey("summary"), HaveKey("description"), HaveKey("runbook_url")), r.Alert)
			g.Expect(r.Labels["severity"]).To(BeElementOf("critical", "warning", "info"), r.Alert)
			i.runbooks = append(i.runbooks, r.Annotations["runbook_url"])
		}
	}
}

func (i *installed) addDashboards(g Gomega, document string) {
	var stored corev1.ConfigMap
	g.Expect(yaml.Unmarshal([]byte(document), &stored)).To(Succeed())
	if stored.Labels["grafana_dashboard"] == "" {
		return
	}
	for _, content := range stored.Data {
		var dashboard struct {
			Panels []struct{ Targets []struct{ Expr string } }
		}
		g.Expect(json.Unmarshal([]byte(content), &dashboard)).To(Succeed())
		i.dashboards++
		for _, panel := range dashboard.Panels {
			g.Expect(panel.Targets).NotTo(BeEmpty())
			for _, target := range panel.Targets {
				i.expressions = append(i.expressions, target.Expr)
			}
		}
	}
}

// anchors returns the links that lead to the headings of a page.
func anchors(page string) []string {
	var all []string
	for line := range strings.Lines(page) {
		heading := strings.TrimSpace(strings.TrimLeft(line, "#"))
		if !strings.HasPrefix(line, "#") || heading == "" {
			continue
		}
		kept := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(heading), "")
		all = append(all, strings.ReplaceAll(kept, " ", "-"))
	}
	return all
}

func TestMonitoring(t *testing.T) {
	g := NewWithT(t)
	all := installs(t.Context(), g)
	t.Run("uses only metrics that a program exports or a rule records", func(t *testing.T) {
		g := NewWithT(t)
		known := series(g)
		g.Expect(all.dashboards).To(BeNumerically(">=", 3))
		for _, expression := range all.expressions {
			used := ours.FindAllString(expression, -1)
			g.Expect(used).NotTo(BeEmpty(), expression)
			for _, name := range used {
				if strings.Contains(name, ":") {
					g.Expect(all.recorded).To(HaveKey(name), expression)
					continue
				}
				g.Expect(known).To(HaveKey(name), expression)
			}
		}
	})
	t.Run("links each alert to a heading that exists", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(all.runbooks).NotTo(BeEmpty())
		for _, link := range all.runbooks {
			page, anchor, found := strings.Cut(strings.TrimPrefix(link, runbookRoot+"/"), "#")
			g.Expect(found).To(BeTrue(), link)
			content, err := os.ReadFile("../../docs/" + page)
			g.Expect(err).NotTo(HaveOccurred(), link)
			g.Expect(anchors(string(content))).To(ContainElement(anchor), link)
		}
	})
}

func TestMetricsPage(t *testing.T) {
	t.Run("When a program registers a metric, the page should list it with its labels", func(t *testing.T) {
		g := NewWithT(t)
		files, err := metricsPage(generator{})
		g.Expect(err).NotTo(HaveOccurred())
		page := string(files[0].data)
		g.Expect(page).To(ContainSubstring("| `hypershift_nodepools_size` | gauge | `namespace`, `name`, `_id`, `cluster_name`, `platform` |"))
		g.Expect(page).To(ContainSubstring("| `maas_client_request_duration_seconds` | histogram | `operation`, `code` |"))
		g.Expect(page).To(ContainSubstring("| `ign_server_token_rotation_total` | counter |"))
		g.Expect(page).NotTo(ContainSubstring("untyped"))
	})
	t.Run("When a label could have any value, no metric should use it", func(t *testing.T) {
		g := NewWithT(t)
		for _, p := range programs() {
			families, err := metrics.Families(p.collectors...)
			g.Expect(err).NotTo(HaveOccurred())
			for _, f := range families {
				g.Expect(slices.ContainsFunc(f.Labels, func(label string) bool {
					return strings.Contains(label, "url") || strings.Contains(label, "endpoint") || label == "message" || label == "error"
				})).To(BeFalse(), f.Name)
			}
		}
	})
}
