// SPDX-License-Identifier: Apache-2.0

// Package metricstest reads metrics in tests as Prometheus does.
package metricstest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Samples maps a name with labels, such as `up{job="x"}`, to a value. For a histogram, it has the count and the sum.
type Samples map[string]float64

// Of gathers collectors. It fails the test if a registry refuses them or their metrics.
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

// Reader creates a service account that may read metrics, as an administrator would for Prometheus, and returns its
// token.
func Reader(t testing.TB, config *rest.Config) string {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	const name, namespace = "prometheus", metav1.NamespaceDefault
	meta := metav1.ObjectMeta{Name: name}
	_, failed := c.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	_, err = c.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	failed = errors.Join(failed, err)
	_, err = c.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}, metav1.CreateOptions{})
	token, askErr := c.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err := errors.Join(failed, err, askErr); err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

// Scrape reads the metrics endpoint at a host and port with a token, and accepts a self-signed certificate. It returns
// nil if nothing listens there, or if a busy API server cannot review the token.
func Scrape(t testing.TB, address, token string) Samples {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // It signs its own certificate.
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Logf("metrics at %s: %s", address, response.Status)
		return nil
	}
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
