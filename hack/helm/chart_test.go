// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/release"
	"sigs.k8s.io/yaml"
)

const image = "registry.example.com/hypershift:v1"

// program runs a program of the product's module and returns what it prints.
func program(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"run"}, args...)...)
	cmd.Dir = "../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go run %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

// written returns the folder of the chart that the make target writes.
func written(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "hypershift")
	program(t, "./cmd/chart", "-version", "v1.2.3", "-to", folder)
	return folder
}

// objects maps the kind, namespace and name of each object to its content.
func objects(t *testing.T, text string) map[string]any {
	t.Helper()
	all := map[string]any{}
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		var obj map[string]any
		if err := yaml.Unmarshal([]byte(document), &obj); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if obj == nil {
			continue
		}
		metadata := obj["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		all[strings.Join([]string{obj["kind"].(string), namespace, metadata["name"].(string)}, " ")] = obj
	}
	return all
}

// template does what `helm template` does.
func template(t *testing.T, folder, namespace string, values map[string]any) (string, error) {
	t.Helper()
	loaded, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := released(loaded, namespace, values)
	if err != nil {
		return "", err
	}
	return rendered.Manifest, nil
}

func released(loaded *chart.Chart, namespace string, values map[string]any) (*release.Release, error) {
	install := action.NewInstall(&action.Configuration{Capabilities: chartutil.DefaultCapabilities.Copy()})
	install.DryRun, install.ClientOnly, install.Replace = true, true, true
	install.ReleaseName, install.Namespace = "hypershift", namespace
	install.KubeVersion = &chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	return install.Run(loaded, values)
}

func TestChart(t *testing.T) {
	folder := written(t)
	for _, tt := range []struct {
		name, namespace string
		values          map[string]any
		flags           []string
	}{
		{"equals install render", "hypershift", map[string]any{}, nil},
		{
			"equals install render with all values", "elsewhere",
			map[string]any{
				"replicas": 2, "imagePullPolicy": "Always",
				"monitoring": map[string]any{
					"enabled": true, "labels": map[string]any{"release": "prom"},
					"dashboardLabels": map[string]any{"grafana_dashboard": "1"}, "runbookURL": "https://docs.example.com",
				},
			},
			[]string{
				"--namespace=elsewhere", "--replicas=2", "--image-pull-policy=Always", "--monitoring",
				"--monitoring-labels=release=prom", "--runbook-url=https://docs.example.com",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			values := map[string]any{"image": image, "namespace": map[string]any{"create": true}}
			maps.Copy(values, tt.values)
			manifest, err := template(t, folder, tt.namespace, values)
			if err != nil {
				t.Fatal(err)
			}
			render := append([]string{"./cmd/hypershift", "install", "render", "--hypershift-image", image}, tt.flags...)
			want, have := objects(t, program(t, render...)), objects(t, manifest)
			if w, h := slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(have)); !slices.Equal(w, h) {
				t.Fatalf("install renders %q\nthe chart %q", w, h)
			}
			for name := range want {
				if !reflect.DeepEqual(want[name], have[name]) {
					t.Errorf("%s differs: install renders\n%v\nthe chart\n%v", name, want[name], have[name])
				}
			}
		})
	}
	t.Run("fits into the Secret in which Helm stores a release", func(t *testing.T) {
		loaded, err := loader.Load(folder)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := released(loaded, "hypershift", map[string]any{"image": image})
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(json.NewEncoder(zip).Encode(stored), zip.Close()); err != nil {
			t.Fatal(err)
		}
		// The API server refuses a Secret of more than 1 MiB.
		if size := base64.StdEncoding.EncodedLen(packed.Len()); size > 1000_000 {
			t.Errorf("the release has %d bytes", size)
		}
	})
	t.Run("passes helm lint", func(t *testing.T) {
		result := action.NewLint().Run([]string{folder}, map[string]any{"image": image})
		for _, message := range result.Messages {
			if message.Severity >= support.WarningSev {
				t.Error(message)
			}
		}
	})
	t.Run("refuses a value that the schema does not know, and a missing image", func(t *testing.T) {
		if _, err := template(t, folder, "hypershift", map[string]any{"image": image, "replica": 2}); err == nil {
			t.Error("the chart accepts the value replica")
		}
		if _, err := template(t, folder, "hypershift", nil); err == nil {
			t.Error("the chart accepts no image")
		}
	})
}
