package nodepool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/releaseinfo"
)

const (
	configKey            = "config"
	coreConfigLabel      = "hypershift.openshift.io/core-ignition-config"
	tunedGeneratedLabel  = "hypershift.openshift.io/nto-generated-machine-config" //nolint:misspell // a name on the wire
	documentSeparator    = "\n---\n"
	baseCoreConfigs      = 2 // FIPS and SSH; the operator itself makes the API proxy's.
	machineConfigGroup   = "machineconfiguration.openshift.io"
	roleLabel            = machineConfigGroup + "/role"
	builtInSelectorLabel = machineConfigGroup + "/mco-built-in"
)

// config is what the nodes of a pool are configured with.
type config struct {
	// raw are all documents in the order of their text.
	raw string
	// hash rolls the pool when it changes; hashWithoutVersion tells a changed configuration from a changed version.
	hash, hashWithoutVersion string
	// trustBundle and globalConfig are inputs of the hashes that other parts need too.
	trustBundle string
}

// reconcileConfig gathers the configuration of the pool's nodes and judges it.
func (r *Reconciler) reconcileConfig(ctx context.Context, s *scope) (ctrl.Result, error) {
	conditionType := hyperv1.NodePoolValidMachineConfigConditionType
	documents, waiting, err := r.documents(ctx, s)
	if err != nil {
		s.reject(conditionType, hyperv1.NodePoolValidationFailedReason, err.Error())
		return ctrl.Result{RequeueAfter: releaseRetry}, r.stopHolding(ctx, s, hyperv1.NodePoolValidationFailedReason, err.Error())
	}
	if waiting != "" {
		s.reject(conditionType, hyperv1.NodePoolValidationFailedReason, waiting)
		return ctrl.Result{RequeueAfter: waitPoll}, r.stopHolding(ctx, s, "WaitingForControlPlane", waiting)
	}
	if s.config.trustBundle, err = r.trustBundle(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	slices.Sort(documents)
	s.config.raw = strings.Join(documents, documentSeparator)
	if err := s.hashConfig(); err != nil {
		return ctrl.Result{}, err
	}
	s.accept(conditionType, hyperv1.AllIsWellMessage)
	s.judgeUpdating()
	return ctrl.Result{}, nil
}

// documents are all parts of the configuration. What the control plane has not made yet is waited for.
func (r *Reconciler) documents(ctx context.Context, s *scope) (documents []string, waiting string, err error) {
	var sources []corev1.ConfigMap
	if s.release.Distribution() == releaseinfo.OpenShift {
		proxy, err := r.apiProxyConfig(ctx, s)
		if err != nil {
			return nil, "", err
		}
		documents = append(documents, proxy)
		core, err := r.listConfigs(ctx, s.namespace(), client.MatchingLabels{coreConfigLabel: "true"})
		if err != nil {
			return nil, "", err
		}
		if want := coreConfigs(s.hc); len(core) != want {
			return nil, fmt.Sprintf("Waiting for the control plane: expected %d core ignition configs, found %d", want, len(core)), nil
		}
		tuned, err := r.listConfigs(ctx, s.namespace(), client.MatchingLabels{tunedGeneratedLabel: "true", hyperv1.NodePoolAnnotation: s.pool.Name})
		if err != nil {
			return nil, "", err
		}
		sources = append(core, tuned...)
	}
	user, err := r.userConfigs(ctx, s)
	if err != nil {
		return nil, "", err
	}
	for _, source := range append(sources, user...) {
		parsed, err := parseConfig(source.Data[configKey])
		if err != nil {
			return nil, "", fmt.Errorf("the ConfigMap %s/%s holds a configuration that cannot be used: %w", source.Namespace, source.Name, err)
		}
		documents = append(documents, parsed...)
	}
	return documents, "", nil
}

// coreConfigs is how many ConfigMaps with core configuration a payload's control-plane-operator makes.
func coreConfigs(hc *hyperv1.HostedCluster) int {
	if len(hc.Spec.ImageContentSources) > 0 {
		return baseCoreConfigs + 1
	}
	return baseCoreConfigs
}

func (r *Reconciler) listConfigs(ctx context.Context, namespace string, labels client.MatchingLabels) ([]corev1.ConfigMap, error) {
	list := &corev1.ConfigMapList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), labels); err != nil {
		return nil, fmt.Errorf("listing ConfigMaps with node configuration in namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}

func (r *Reconciler) userConfigs(ctx context.Context, s *scope) ([]corev1.ConfigMap, error) {
	var configs []corev1.ConfigMap
	for _, ref := range s.pool.Spec.Config {
		source := corev1.ConfigMap{}
		key := ctrlKey(s.pool.Namespace, ref.Name)
		err := r.Client.Get(ctx, key, &source)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("spec.config: there is no ConfigMap %s: create it", key)
		}
		if err != nil {
			return nil, fmt.Errorf("reading ConfigMap %s: %w", key, err)
		}
		if source.Data[configKey] == "" {
			return nil, fmt.Errorf("spec.config: the ConfigMap %s has no key %q: add it", key, configKey)
		}
		configs = append(configs, source)
	}
	return configs, nil
}

// accepted are the kinds that a configuration may hold.
var accepted = []string{
	"MachineConfig", "KubeletConfig", "ContainerRuntimeConfig", "ImageContentSourcePolicy", "ImageDigestMirrorSet", "ClusterImagePolicy",
}

// parseConfig splits a configuration into documents, checks them, and gives each what its consumer selects it by.
func parseConfig(text string) ([]string, error) {
	var documents []string
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("it is not YAML: %w", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		document, err := renderConfig(object)
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
}

func renderConfig(object *unstructured.Unstructured) (string, error) {
	if !slices.Contains(accepted, object.GetKind()) {
		return "", fmt.Errorf("kind %q is not a node configuration: use one of %s", object.GetKind(), strings.Join(accepted, ", "))
	}
	var err error
	switch object.GetKind() {
	case "MachineConfig":
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[roleLabel] = "worker"
		object.SetLabels(labels)
	case "KubeletConfig", "ContainerRuntimeConfig":
		selector := map[string]any{"matchLabels": map[string]any{builtInSelectorLabel: ""}}
		err = unstructured.SetNestedMap(object.Object, selector, "spec", "machineConfigPoolSelector")
	case "ClusterImagePolicy":
		object.SetAPIVersion("config.openshift.io/v1")
	}
	if err != nil {
		return "", fmt.Errorf("setting the pool selector of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	rendered, err := yaml.Marshal(object.Object)
	if err != nil {
		return "", fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return string(rendered), nil
}

// hashConfig computes what rolls the pool. Only the names of the pull secret and the trust bundle are in it: nodes take
// changed content without being replaced.
func (s *scope) hashConfig() error {
	global, err := globalConfig(s.hc)
	if err != nil {
		return err
	}
	names := s.hc.Spec.PullSecret.Name
	if ref := s.hc.Spec.AdditionalTrustBundle; ref != nil {
		names += ref.Name
	}
	s.config.hash = naming.Hash(s.config.raw + s.releaseIdentity() + names + global)
	s.config.hashWithoutVersion = naming.Hash(s.config.raw + names)
	return nil
}

// configurationHash is what the control plane writes into the ConfigMap machine-config-server, so that an ignition-server
// can tell whether both are of the same configuration.
func configurationHash(hc *hyperv1.HostedCluster) (string, error) {
	raw, err := json.Marshal(hc.Spec.Configuration)
	if err != nil {
		return "", fmt.Errorf("encoding spec.configuration of HostedCluster %s: %w", hc.Name, err)
	}
	return naming.Hash(string(withoutEmptyImportMode(raw))), nil
}

// withoutEmptyImportMode drops a field that older operators do not know, and that is part of a hash both must agree on.
func withoutEmptyImportMode(raw []byte) []byte {
	for _, text := range []string{`,"imageStreamImportMode":""`, `"imageStreamImportMode":"",`, `"imageStreamImportMode":""`} {
		raw = bytes.ReplaceAll(raw, []byte(text), nil)
	}
	return raw
}
