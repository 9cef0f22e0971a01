// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
)

// awsModule is the AWS provider. It is not a requirement of our module, since it would add the AWS client libraries.
// Its sum is therefore here and not in go.sum.
const (
	awsModule    = "sigs.k8s.io/cluster-api-provider-aws/v2@v2.13.0"
	awsModuleSum = "h1:yQz7GBrIkPLuEJ5MXNuZ/6eUssTJK8reUnZ6t5QIPnU="
)

// awsResources are the kinds that the provider's controllers watch, without those of EKS and ROSA.
var awsResources = []string{"awsclusters", "awsmachinepools", "awsmachines", "awsmachinetemplates"}

// awsCRDs returns the CRDs that the provider publishes, with the served versions only.
func awsCRDs(g generator) ([]file, error) {
	folder, err := g.download(awsModule, awsModuleSum)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, resource := range awsResources {
		crd, err := readObject(filepath.Join(folder, "config/crd/bases/infrastructure.cluster.x-k8s.io_"+resource+".yaml"))
		if err != nil {
			return nil, err
		}
		if err := trimToServed(crd); err != nil {
			return nil, fmt.Errorf("CRD %s: %w", name(crd), err)
		}
		setLabels(crd, map[string]any{"cluster.x-k8s.io/provider": "infrastructure-aws", "cluster.x-k8s.io/v1beta1": "v1beta2"})
		f, err := crdFile("aws", crd)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// trimToServed removes descriptions, and versions that no API server would serve.
func trimToServed(crd object) error {
	served := slices.DeleteFunc(versions(crd), func(version object) bool { return version["served"] != true })
	list := make([]any, 0, len(served))
	for _, version := range served {
		schema, err := at(version, "schema", "openAPIV3Schema")
		if err != nil {
			return err
		}
		strip(schema)
		list = append(list, version)
	}
	crd["spec"].(object)["versions"] = list
	return nil
}

// download returns the folder of a module at a version, and verifies its sum. It runs outside our module, whose
// go.mod does not require the downloaded module.
func (g generator) download(module, sum string) (string, error) {
	command := exec.Command("go", "mod", "download", "-json", module)
	command.Dir = g.scratch
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("downloading %s: %w\n%s", module, err, out)
	}
	var got struct{ Dir, Sum string }
	if err := json.Unmarshal(out, &got); err != nil {
		return "", fmt.Errorf("downloading %s: %w", module, err)
	}
	if got.Sum != sum {
		return "", fmt.Errorf("downloading %s: its sum is %s instead of %s", module, got.Sum, sum)
	}
	return got.Dir, nil
}
