// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// guestNamespaces are namespaces that the cluster-version-operator creates, and in which the release's operators write.
var guestNamespaces = []string{
	"openshift", "openshift-config", "openshift-config-managed", "openshift-ingress-operator", "openshift-ingress",
	"openshift-kube-apiserver-operator", "openshift-kube-controller-manager-operator", "openshift-marketplace",
	"openshift-monitoring", "openshift-machine-config-operator", "openshift-console", "openshift-image-registry",
	"openshift-network-operator", "openshift-operator-lifecycle-manager", "openshift-cluster-storage-operator",
}

// foreignKinds lists kinds that other operators of a release install, and that the release's config operator watches.
var foreignKinds = []struct{ group, version, kind, plural, scope string }{
	{"monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules", "Namespaced"},
	{"monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors", "Namespaced"},
	{"monitoring.coreos.com", "v1", "PodMonitor", "podmonitors", "Namespaced"},
	{"migration.k8s.io", "v1alpha1", "StorageVersionMigration", "storageversionmigrations", "Cluster"},
	{"operators.coreos.com", "v1alpha1", "CatalogSource", "catalogsources", "Namespaced"},
	{"operators.coreos.com", "v1", "OperatorGroup", "operatorgroups", "Namespaced"},
	{"snapshot.storage.k8s.io", "v1", "VolumeSnapshot", "volumesnapshots", "Namespaced"},
}

// prepareGuest replaces the bootstrap container of the kube-apiserver and the cluster-version-operator. It creates
// CRDs, namespaces, and the rights of the config operator in the hosted cluster.
func (s *suite) prepareGuest(ctx context.Context) error {
	api, err := s.sources.openshiftAPIDir(ctx)
	if err != nil {
		return err
	}
	files, err := guestCRDs(api)
	if err != nil {
		return err
	}
	var manifests bytes.Buffer
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(&manifests, "%s\n---\n", bytes.TrimSpace(text))
	}
	objects := []any{&rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: "hcco-cluster-admin"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "system:hosted-cluster-config"}},
	}}
	for _, namespace := range guestNamespaces {
		objects = append(objects, &corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: namespace},
		})
	}
	for _, k := range foreignKinds {
		objects = append(objects, anyCRD(k.group, k.version, k.kind, k.plural, k.scope))
	}
	for _, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			return err
		}
		fmt.Fprintf(&manifests, "%s\n---\n", text)
	}
	return s.apply(ctx, manifests.Bytes(), s.Guest(cluster, "apply", "--server-side", "--force-conflicts", "-f", "-"))
}

// otherSets lists parts of the file names of CRDs that belong to other feature sets or other kinds of clusters.
var otherSets = []string{"-CustomNoUpgrade", "-DevPreviewNoUpgrade", "-TechPreviewNoUpgrade", "-OKD", "-SelfManagedHA"}

// guestCRDs lists the CRDs of openshift/api that a hosted cluster has with the default feature set.
func guestCRDs(api string) ([]string, error) {
	var files []string
	for _, pattern := range []string{
		"payload-manifests/crds/*.yaml", "config/v1/zz_generated.crd-manifests/*.yaml",
		"operator/v1/zz_generated.crd-manifests/*.yaml", "imageregistry/v1/zz_generated.crd-manifests/*.yaml",
		"operatoringress/v1/zz_generated.crd-manifests/*.yaml", "network/v1/zz_generated.crd-manifests/*.yaml",
	} {
		found, err := filepath.Glob(filepath.Join(api, pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	files = slices.DeleteFunc(files, func(file string) bool {
		return slices.ContainsFunc(otherSets, func(set string) bool { return strings.Contains(filepath.Base(file), set) })
	})
	if len(files) == 0 {
		return nil, fmt.Errorf("%s contains no CRDs; this test does not know its layout", api)
	}
	// Two folders contain some of the files.
	seen := map[string]bool{}
	return slices.DeleteFunc(files, func(file string) bool {
		again := seen[filepath.Base(file)]
		seen[filepath.Base(file)] = true
		return again
	}), nil
}

// anyCRD returns a CRD that accepts any object.
func anyCRD(group, version, kind, plural, scope string) map[string]any {
	names := map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": strings.ToLower(kind)}
	schema := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name": plural + "." + group, "annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for a test"},
		},
		"spec": map[string]any{
			"group": group, "scope": scope, "names": names,
			"versions": []any{map[string]any{
				"name": version, "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": schema},
			}},
		},
	}
}

// apply runs a command with manifests as its input.
func (s *suite) apply(ctx context.Context, manifests []byte, argv []string) error {
	file := s.Path("manifests.yaml")
	if err := os.WriteFile(file, manifests, 0o600); err != nil {
		return err
	}
	defer os.Remove(file)
	argv = slices.Clone(argv)
	argv[len(argv)-1] = file
	_, err := s.Read(ctx, argv...)
	return err
}

// featureGates writes the ConfigMap that the Job featuregate-generator writes, for a version.
func (s *suite) featureGates(ctx context.Context, version string) error {
	gate, err := json.Marshal(map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "FeatureGate",
		"metadata": map[string]any{"name": "cluster"}, "spec": map[string]any{"featureSet": ""},
		"status": map[string]any{"featureGates": []any{map[string]any{
			"version": version, "enabled": []any{map[string]any{"name": "BuildCSIVolumes"}},
			"disabled": []any{map[string]any{"name": "EventedPLEG"}},
		}}},
	})
	if err != nil {
		return err
	}
	object, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "feature-gate", "namespace": hosted},
		"data": map[string]string{"feature-gate.yaml": string(gate)},
	})
	if err != nil {
		return err
	}
	return s.apply(ctx, object, []string{"kubectl", "apply", "-f", "-"})
}

// versionApplied writes the status that the cluster-version-operator writes when the hosted cluster runs a version.
func (s *suite) versionApplied(ctx context.Context, version, image string) error {
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind, status, reason string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": version, "lastTransitionTime": now}
	}
	status, err := json.Marshal(map[string]any{"status": map[string]any{
		"observedGeneration": 1, "versionHash": "none", "availableUpdates": []any{},
		"desired": map[string]any{"version": version, "image": image},
		"history": []any{map[string]any{
			"state": "Completed", "version": version, "image": image, "verified": false,
			"startedTime": now, "completionTime": now,
		}},
		"conditions": []any{
			condition("Available", "True", "Done"), condition("Failing", "False", "Done"),
			condition("Progressing", "False", "Done"), condition("ReleaseAccepted", "True", "PayloadLoaded"),
			condition("RetrievedUpdates", "False", "NoChannel"),
		},
	}})
	if err != nil {
		return err
	}
	_, err = s.Read(ctx, s.Guest(cluster, "patch", "clusterversion", "version", "--subresource=status", "--type=merge",
		"-p", string(status))...)
	return err
}

// buildFake builds the fake program, and returns its path.
func buildFake(ctx context.Context, folder string) (string, error) {
	target := filepath.Join(folder, "fake")
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", target, "./fake")
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath -buildvcs=false", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the fake program: %w: %s", err, out)
	}
	return target, nil
}
