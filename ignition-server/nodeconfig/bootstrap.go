// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coreos/ignition/v2/config/v3_4/types"

	"github.com/openshift/hypershift/support/nodeplan"
)

const bootstrapKubeconfigPath = nodeplan.BootstrapKubeconfig

var errNoBootstrap = errors.New("the node configuration has no file " + bootstrapKubeconfigPath)

// WithBootstrap applies change to the bootstrap kubeconfig of a rendered configuration, which is an Ignition config or
// a node plan. It returns an error if the configuration has no bootstrap kubeconfig. Otherwise it would be served with
// credentials that all machines share.
func WithBootstrap(config []byte, change func(kubeconfig []byte) ([]byte, error)) ([]byte, error) {
	if plan, err := nodeplan.Parse(config); err == nil {
		return planWithBootstrap(plan, change)
	}
	var rendered types.Config
	if err := json.Unmarshal(config, &rendered); err != nil {
		return nil, fmt.Errorf("read the node configuration: %w", err)
	}
	files := rendered.Storage.Files
	at := slices.IndexFunc(files, func(f types.File) bool { return f.Path == bootstrapKubeconfigPath })
	if at < 0 || files[at].Contents.Source == nil {
		return nil, errNoBootstrap
	}
	kubeconfig, err := contentOf(files[at].Contents)
	if err != nil {
		return nil, fmt.Errorf("read the file %s of the node configuration: %w", bootstrapKubeconfigPath, err)
	}
	changed, err := change(kubeconfig)
	if err != nil {
		return nil, err
	}
	files[at] = file(bootstrapKubeconfigPath, 0o600, changed)
	return json.Marshal(rendered)
}

func planWithBootstrap(plan *nodeplan.Plan, change func(kubeconfig []byte) ([]byte, error)) ([]byte, error) {
	at := slices.IndexFunc(plan.Files, func(f nodeplan.File) bool { return f.Path == bootstrapKubeconfigPath })
	if at < 0 {
		return nil, errNoBootstrap
	}
	changed, err := change(plan.Files[at].Content)
	if err != nil {
		return nil, err
	}
	plan.Files[at].Content = changed
	return json.Marshal(plan)
}
