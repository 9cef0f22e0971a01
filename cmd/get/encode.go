// SPDX-License-Identifier: Apache-2.0

package get

import (
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/cmd/kube"
)

// encode prints the objects as a list, as kubectl does, or one object alone.
func (g *get) encode(out io.Writer, items []item, single bool) error {
	all := []any{}
	for _, i := range items {
		content, err := contentOf(i.object)
		if err != nil {
			return err
		}
		all = append(all, content)
	}
	var document any = map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": all}
	if single && len(all) == 1 {
		document = all[0]
	}
	text, err := yaml.Marshal(document)
	if g.output == outputJSON {
		text, err = json.MarshalIndent(document, "", "    ")
		text = append(text, '\n')
	}
	if err != nil {
		return fmt.Errorf("encode the list: %w", err)
	}
	_, err = out.Write(text)
	return err
}

// contentOf adds the kind to an object, and removes its managed fields.
func contentOf(value any) (any, error) {
	obj, ok := value.(client.Object)
	if !ok {
		return value, nil
	}
	gvk, err := apiutil.GVKForObject(obj, kube.Scheme)
	if err != nil {
		return nil, fmt.Errorf("find the kind of %s: %w", obj.GetName(), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", gvk.Kind, obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	u.SetManagedFields(nil)
	return u.Object, nil
}
