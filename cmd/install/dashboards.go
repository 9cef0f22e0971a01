// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// dashboard is one entry of manifests/dashboards.yaml.
type dashboard struct {
	Name, Title string
	// Variable lets the user choose values of a label; nil if the dashboard has no choice.
	Variable *struct{ Name, Label, Of string }
	Panels   []struct{ Title, Type, Unit, Expr, Legend string }
}

// dashboards returns the ConfigMaps that Grafana's sidecar loads.
func (o *Options) dashboards() []client.Object {
	raw, err := manifests.ReadFile("manifests/dashboards.yaml")
	var all []dashboard
	if err == nil {
		err = yaml.UnmarshalStrict(raw, &all)
	}
	if err != nil {
		// An embedded file cannot be read: a defect of the build that the first run shows.
		panic(err)
	}
	var objs []client.Object
	for i := range all {
		objs = append(objs, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: o.namespace, Name: "dashboard-" + all[i].Name, Labels: o.alerting.dashboardLabels,
			},
			Data: map[string]string{"hypershift-" + all[i].Name + ".json": all[i].render()},
		})
	}
	return objs
}

type values map[string]any

// render returns the dashboard in Grafana's format: two panels in a row.
func (d *dashboard) render() string {
	source := values{"type": "prometheus", "uid": "${datasource}"}
	variables := []any{values{"name": "datasource", "type": "datasource", "query": "prometheus"}}
	if v := d.Variable; v != nil {
		variables = append(variables, values{
			"name": v.Name, "type": "query", "datasource": source, "refresh": 2, "includeAll": false,
			"query": fmt.Sprintf("label_values(%s, %s)", v.Of, v.Label),
		})
	}
	const width, height = 12, 8
	var panels []any
	for i, p := range d.Panels {
		panels = append(panels, values{
			"id": i + 1, "title": p.Title, "type": cmp.Or(p.Type, "timeseries"), "datasource": source,
			"gridPos":     values{"x": i % 2 * width, "y": i / 2 * height, "w": width, "h": height},
			"fieldConfig": values{"defaults": values{"unit": cmp.Or(p.Unit, "short")}, "overrides": []any{}},
			"targets":     []any{values{"refId": "A", "expr": p.Expr, "legendFormat": p.Legend}},
		})
	}
	content, err := json.MarshalIndent(values{
		"title": d.Title, "uid": "hypershift-" + d.Name, "schemaVersion": 39, "version": 1, "timezone": "utc", "refresh": "1m",
		"time": values{"from": "now-6h", "to": "now"}, "templating": values{"list": variables}, "panels": panels,
	}, "", " ")
	if err != nil {
		// Strings and numbers always have a JSON form.
		panic(err)
	}
	return string(content)
}
