// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/images"
)

// fieldOwner is the owner of the fields that this program applies.
const fieldOwner = client.FieldOwner("devcluster")

// Connect returns a client of the management cluster, whose API must be ready.
func Connect(e env.Env) (client.Client, error) {
	config, err := restConfig(e)
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("connecting to the management cluster: %w", err)
	}
	return c, nil
}

// restConfig returns a configuration without a rate limit, since the server belongs to this environment.
func restConfig(e env.Env) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", e.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the management cluster's kubeconfig %s: %w", e.Kubeconfig(), err)
	}
	config.QPS = -1
	config.Proxy = noProxy
	return config, nil
}

// Apply applies the environment's own objects (DNS, default StorageClass, ...) to the management cluster.
func Apply(ctx context.Context, e env.Env, c client.Client) error {
	specs, err := images.Pullspecs(e.Images(), env.Registry)
	if err != nil {
		return err
	}
	manifests, err := renderManifests(newValues(env.Nodes(1)[0], specs))
	if err != nil {
		return err
	}
	objects, err := decode(manifests)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("applying %s %s to the management cluster: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func decode(manifests []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifests)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		content := map[string]any{}
		if err := yaml.Unmarshal(document, &content); err != nil {
			return nil, fmt.Errorf("reading a manifest: %w", err)
		}
		if len(content) > 0 {
			objects = append(objects, &unstructured.Unstructured{Object: content})
		}
	}
}
