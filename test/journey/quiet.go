// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// pulse lists the resources that every cluster writes continuously; nodes and pods report their status.
var pulse = []string{"leases", "events", "nodes", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews", "serviceaccounts"}

// Quiet checks that no object of a cluster has been written for a while, as in a settled system. The kubeconfig selects
// the cluster.
func (w *Walker) Quiet(kubeconfig string, window time.Duration) Check {
	var last map[string]float64
	var since time.Time
	return func(ctx context.Context) (bool, string, error) {
		metrics, err := w.Read(ctx, "kubectl", "--kubeconfig", kubeconfig, "get", "--raw", "/metrics")
		if err != nil {
			return false, "", err
		}
		now, err := writes(metrics)
		if err != nil {
			return false, "", err
		}
		progress := ""
		if written := changed(last, now); len(written) > 0 {
			progress = "written since the last look: " + strings.Join(written, ", ")
		}
		if !maps.Equal(last, now) {
			last, since = now, time.Now()
		}
		return time.Since(since) >= window, progress, nil
	}
}

// writes counts an API server's requests that changed an object, by resource and verb.
func writes(metrics string) (map[string]float64, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(metrics))
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of a kube-apiserver: %w", err)
	}
	counts := map[string]float64{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		labels := labelsOf(m)
		if reads := []string{"GET", "LIST", "WATCH", "CONNECT"}; slices.Contains(reads, labels["verb"]) || slices.Contains(pulse, labels["resource"]) {
			continue
		}
		counts[strings.Join([]string{labels["verb"], labels["resource"], labels["subresource"]}, " ")] += m.GetCounter().GetValue()
	}
	return counts, nil
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range m.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

// changed returns what was written between two counts, sorted; nothing for a first count.
func changed(before, now map[string]float64) []string {
	if before == nil {
		return nil
	}
	var names []string
	for name, count := range now {
		if count != before[name] {
			names = append(names, strings.TrimSpace(name))
		}
	}
	slices.Sort(names)
	return names
}
