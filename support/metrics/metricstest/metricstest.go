// Package metricstest reads metrics as a Prometheus would, for tests.
package metricstest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Samples are values by name and labels, as in `up{job="x"}`. Of histograms they hold the count and the sum.
type Samples map[string]float64

// Of reads collectors, and fails the test where a registry does not take them, or what they say.
func Of(t testing.TB, collectors ...prometheus.Collector) Samples {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	for _, c := range collectors {
		if err := registry.Register(c); err != nil {
			t.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return read(families)
}

// Scrape reads the metrics endpoint at a host and port; there are none while nothing listens.
func Scrape(t testing.TB, address string) Samples {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	parsed, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var families []*dto.MetricFamily
	for _, family := range parsed {
		families = append(families, family)
	}
	return read(families)
}

func read(families []*dto.MetricFamily) Samples {
	all := Samples{}
	for _, family := range families {
		for _, metric := range family.Metric {
			name, labels := family.GetName(), labelsOf(metric)
			switch family.GetType() {
			case dto.MetricType_HISTOGRAM:
				all[name+"_count"+labels] = float64(metric.GetHistogram().GetSampleCount())
				all[name+"_sum"+labels] = metric.GetHistogram().GetSampleSum()
			case dto.MetricType_COUNTER:
				all[name+labels] = metric.GetCounter().GetValue()
			default:
				all[name+labels] = metric.GetGauge().GetValue()
			}
		}
	}
	return all
}

func labelsOf(metric *dto.Metric) string {
	var all []string
	for _, label := range metric.Label {
		all = append(all, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
	}
	if len(all) == 0 {
		return ""
	}
	return "{" + strings.Join(all, ",") + "}"
}
