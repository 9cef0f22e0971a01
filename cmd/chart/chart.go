// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/cmd/root"
)

//go:embed files
var files embed.FS

// The values that install renders where the chart has a template. They occur nowhere else in the objects.
const (
	// registryMark stands for the registry of the image, which tenants may use.
	registryMark = "chart-registry-mark.invalid"
	imageMark    = registryMark + "/chart-image:mark"
	namespace    = "chart-namespace-mark"
	replicasMark = "424242"
	labelMark    = "chart-label-mark"
	boardMark    = "chart-board-mark"
	runbookMark  = "https://chart-runbook-mark.invalid"
)

// marks maps what install renders to its template. Longer marks precede their parts.
var marks = strings.NewReplacer(
	"{{", `{{ "{{" }}`,
	imageMark, "{{ .Values.image }}",
	registryMark, `{{ (split "/" .Values.image)._0 }}`,
	namespace, "{{ .Release.Namespace }}",
	"replicas: "+replicasMark, "replicas: {{ .Values.replicas }}",
	"imagePullPolicy: Never", "imagePullPolicy: {{ .Values.imagePullPolicy }}",
	runbookMark, "{{ .Values.monitoring.runbookURL }}",
)

// labelLine matches the line of a label that stands for labels of the values.
var labelLine = regexp.MustCompile(`(?m)^( *)(` + labelMark + `|` + boardMark + `): .*$`)

// document is one rendered object and the condition under which the chart has it; empty for always.
type document struct{ text, condition string }

// render returns the objects of `install render` with the flags that every variant has.
func render(extra []string, flags ...string) ([]string, error) {
	cmd := root.Hypershift()
	var out, stderr bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&stderr)
	cmd.SetArgs(slices.Concat([]string{
		"install", "render", "--hypershift-image", imageMark, "--namespace", namespace, "--image-pull-policy", "Never",
	}, flags, extra))
	if err := cmd.Execute(); err != nil {
		return nil, fmt.Errorf("rendering the installation: %w: %s", err, &stderr)
	}
	all := strings.Split("\n"+out.String(), "\n---\n")
	return slices.DeleteFunc(all, func(text string) bool { return strings.TrimSpace(text) == "" }), nil
}

// identity returns the kind, namespace and name of an object.
func identity(text string) (string, error) {
	var obj struct {
		Kind     string
		Metadata struct{ Namespace, Name string }
	}
	if err := yaml.Unmarshal([]byte(text), &obj); err != nil {
		return "", fmt.Errorf("reading a rendered object: %w", err)
	}
	return obj.Kind + " " + obj.Metadata.Namespace + "/" + obj.Metadata.Name, nil
}

func identities(texts []string) (map[string]bool, error) {
	all := map[string]bool{}
	for _, text := range texts {
		id, err := identity(text)
		if err != nil {
			return nil, err
		}
		all[id] = true
	}
	return all, nil
}

// documents renders the largest installation, and finds by smaller ones which objects depend on a value.
func documents(extra []string) ([]document, error) {
	monitored := []string{"--monitoring", "--monitoring-labels", labelMark + "=x", "--dashboard-labels", boardMark + "=x", "--runbook-url", runbookMark}
	full, err := render(extra, append([]string{"--replicas", replicasMark}, monitored...)...)
	if err != nil {
		return nil, err
	}
	single, err := render(extra, append([]string{"--replicas", "1"}, monitored...)...)
	if err != nil {
		return nil, err
	}
	plain, err := render(extra, "--replicas", replicasMark)
	if err != nil {
		return nil, err
	}
	withOne, err := identities(single)
	if err != nil {
		return nil, err
	}
	withoutMonitoring, err := identities(plain)
	if err != nil {
		return nil, err
	}
	var all []document
	for _, text := range full {
		id, err := identity(text)
		if err != nil {
			return nil, err
		}
		d := document{text: text}
		switch {
		case id == "Namespace /"+namespace:
			d.condition = ".Values.namespace.create"
		case !withOne[id]:
			d.condition = "gt (int .Values.replicas) 1"
		case !withoutMonitoring[id]:
			d.condition = ".Values.monitoring.enabled"
		}
		all = append(all, d)
	}
	return all, nil
}

// template returns the object as Helm reads it.
func (d document) template() string {
	text := strings.TrimSpace(marks.Replace(d.text)) + "\n"
	text = labelLine.ReplaceAllStringFunc(text, func(line string) string {
		match := labelLine.FindStringSubmatch(line)
		values := "labels"
		if match[2] == boardMark {
			values = "dashboardLabels"
		}
		return fmt.Sprintf("%s{{- with .Values.monitoring.%s }}{{ toYaml . | nindent %d }}{{ end }}", match[1], values, len(match[1]))
	})
	if d.condition != "" {
		text = "{{- if " + d.condition + " }}\n" + text + "{{- end }}\n"
	}
	return "---\n" + text
}

// write replaces the folder by the chart.
func write(folder, version string, extra []string) error {
	all, err := documents(extra)
	if err != nil {
		return err
	}
	var crds, resources strings.Builder
	for _, d := range all {
		to := &resources
		if strings.Contains(d.text, "\nkind: CustomResourceDefinition\n") {
			to = &crds
		}
		to.WriteString(d.template())
	}
	number := strings.TrimPrefix(version, "v")
	contents := map[string]string{
		"templates/crds.yaml": crds.String(), "templates/resources.yaml": resources.String(),
		"Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: hypershift\ndescription: Hosted control planes with workers on MAAS\n"+
			"type: application\n"+
			"version: %q\nappVersion: %q\nkubeVersion: \">=1.31.0-0\"\n", number, version),
	}
	for _, name := range []string{"values.yaml", "values.schema.json"} {
		content, err := files.ReadFile("files/" + name)
		if err != nil {
			return fmt.Errorf("reading the file %s of the chart: %w", name, err)
		}
		contents[name] = string(content)
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("removing the previous chart: %w", err)
	}
	for name, content := range contents {
		path := filepath.Join(folder, name)
		//nolint:gosec // A chart is published, and holds no secret.
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("writing the chart: %w", err)
		}
		//nolint:gosec // As above.
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return fmt.Errorf("writing the chart: %w", err)
		}
	}
	return nil
}
