// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/support/metrics"
)

const monitoring = "../../docs/examples/monitoring/"

// ours matches the names of our metrics.
var ours = regexp.MustCompile(`\b(hypershift|capmaas|maas_client|ign_server)_\w+`)

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

func expectKnown(g Gomega, expressions []string) {
	known := series(g)
	g.Expect(expressions).NotTo(BeEmpty())
	for _, expression := range expressions {
		used := ours.FindAllString(expression, -1)
		g.Expect(used).NotTo(BeEmpty(), expression)
		for _, name := range used {
			g.Expect(known).To(HaveKey(name), expression)
		}
	}
}

func TestDashboard(t *testing.T) {
	t.Run("When the dashboard queries a metric, a program should export it", func(t *testing.T) {
		g := NewWithT(t)
		data, err := os.ReadFile(monitoring + "dashboard.json")
		g.Expect(err).NotTo(HaveOccurred())
		var dashboard struct {
			Panels []struct{ Targets []struct{ Expr string } }
		}
		g.Expect(json.Unmarshal(data, &dashboard)).To(Succeed())
		var expressions []string
		for _, panel := range dashboard.Panels {
			g.Expect(panel.Targets).NotTo(BeEmpty())
			for _, target := range panel.Targets {
				expressions = append(expressions, target.Expr)
			}
		}
		expectKnown(g, expressions)
	})
	t.Run("When an alert queries a metric, a program should export it", func(t *testing.T) {
		g := NewWithT(t)
		data, err := os.ReadFile(monitoring + "alerts.yaml")
		g.Expect(err).NotTo(HaveOccurred())
		var rule struct {
			Kind string
			Spec struct {
				Groups []struct {
					Rules []struct {
						Alert, Expr         string
						Labels, Annotations map[string]string
					}
				}
			}
		}
		g.Expect(yaml.Unmarshal(data, &rule)).To(Succeed())
		var expressions []string
		for _, group := range rule.Spec.Groups {
			for _, alert := range group.Rules {
				g.Expect(alert.Annotations).To(And(HaveKey("summary"), HaveKey("description")), alert.Alert)
				g.Expect(alert.Labels["severity"]).To(BeElementOf("critical", "warning", "info"), alert.Alert)
				expressions = append(expressions, alert.Expr)
			}
		}
		expectKnown(g, expressions)
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
