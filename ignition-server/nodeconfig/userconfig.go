package nodeconfig

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	igncfg "github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_4/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/support/releaseinfo"
)

// userConfig is what the documents of a NodePool's spec.config ask for.
type userConfig struct {
	ignition []types.Config
	kubelet  []kubeletPatch
	mirrors  []releaseinfo.Mirror
}

// document has the fields of all kinds that a node configuration may hold.
type document struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              map[string]json.RawMessage `json:"spec"`
}

// fieldReader reads one field of a kind into the configuration.
type fieldReader func(u *userConfig, name string, raw json.RawMessage) error

// readers lists, for each kind, the fields that a node of the Kubernetes distribution can honour. Others are refused, not
// ignored.
var readers = map[string]map[string]fieldReader{
	"MachineConfig":            {"config": readIgnition},
	"KubeletConfig":            {"kubeletConfig": readKubelet, "machineConfigPoolSelector": ignoreField},
	"ImageContentSourcePolicy": {"repositoryDigestMirrors": readMirrors},
	"ImageDigestMirrorSet":     {"imageDigestMirrors": readMirrors},
	"ImageTagMirrorSet":        {"imageTagMirrors": readMirrors},
}

func parseUserConfig(text string) (*userConfig, error) {
	documents, err := splitDocuments(text)
	if err != nil {
		return nil, err
	}
	// Merged in the order of their names, so the order of the ConfigMaps has no effect.
	slices.SortStableFunc(documents, func(a, b document) int { return strings.Compare(a.Name, b.Name) })
	u := &userConfig{}
	for _, doc := range documents {
		if err := u.add(doc); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func splitDocuments(text string) ([]document, error) {
	var documents []document
	for r := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		raw, err := r.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("split the NodePool's configuration into YAML documents: %w", err)
		}
		var doc document
		if err := yaml.Unmarshal(raw, &doc); err != nil {
			return nil, fmt.Errorf("the NodePool's configuration holds a document that is no YAML object: %w", err)
		}
		if doc.Kind != "" || len(bytes.TrimSpace(raw)) > 0 && doc.Spec != nil {
			documents = append(documents, doc)
		}
	}
}

func (u *userConfig) add(doc document) error {
	fields, ok := readers[doc.Kind]
	if !ok {
		return fmt.Errorf("%s %q cannot be applied to nodes of the Kubernetes distribution; remove it from the NodePool's spec.config", doc.Kind, doc.Name)
	}
	for field, raw := range doc.Spec {
		if isEmpty(raw) {
			continue
		}
		read, ok := fields[field]
		if !ok {
			return fmt.Errorf("%s %q sets spec.%s, which nodes of the Kubernetes distribution cannot honour; remove the field", doc.Kind, doc.Name, field)
		}
		if err := read(u, doc.Name, raw); err != nil {
			return fmt.Errorf("%s %q: %w", doc.Kind, doc.Name, err)
		}
	}
	return nil
}

// isEmpty tells fields that a typed client writes out although they are not set.
func isEmpty(raw json.RawMessage) bool {
	return slices.Contains([]string{"null", `""`, "[]", "{}", "false"}, string(raw))
}

func ignoreField(*userConfig, string, json.RawMessage) error { return nil }

func readIgnition(u *userConfig, _ string, raw json.RawMessage) error {
	cfg, report, err := igncfg.ParseCompatibleVersion(raw)
	if err != nil {
		return fmt.Errorf("spec.config is no valid Ignition config of version 3.0 to %s: %w: %s",
			types.MaxVersion, err, strings.TrimSpace(report.String()))
	}
	u.ignition = append(u.ignition, cfg)
	return nil
}

func readKubelet(u *userConfig, name string, raw json.RawMessage) error {
	patch := kubeletPatch{name: name}
	if err := json.Unmarshal(raw, &patch.fields); err != nil {
		return fmt.Errorf("spec.kubeletConfig is no object: %w", err)
	}
	u.kubelet = append(u.kubelet, patch)
	return nil
}

func readMirrors(u *userConfig, _ string, raw json.RawMessage) error {
	var entries []struct {
		Source       string   `json:"source"`
		Mirrors      []string `json:"mirrors"`
		SourcePolicy string   `json:"mirrorSourcePolicy"`
	}
	if err := json.Unmarshal(raw, &entries); err != nil {
		return fmt.Errorf("its list of mirrors cannot be read: %w", err)
	}
	for _, entry := range entries {
		if entry.SourcePolicy == "NeverContactSource" {
			return fmt.Errorf("mirrorSourcePolicy NeverContactSource of %s cannot be honoured by containerd; remove it", entry.Source)
		}
		u.mirrors = append(u.mirrors, releaseinfo.Mirror{Source: entry.Source, Mirrors: entry.Mirrors})
	}
	return nil
}
