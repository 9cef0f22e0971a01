// SPDX-License-Identifier: Apache-2.0

// Package manifest reads Kubernetes manifests from files.
package manifest

import (
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Load reads the single object in file as its Go type. It returns an error for a field that the type does not have.
func Load(scheme *runtime.Scheme, files fs.FS, file string) (client.Object, error) {
	raw, err := fs.ReadFile(files, file)
	if err != nil {
		return nil, fmt.Errorf("reading manifest %s: %w", file, err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	decoded, gvk, err := decoder.Decode(raw, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decoding manifest %s: %w", file, err)
	}
	obj, ok := decoded.(client.Object)
	if !ok {
		return nil, fmt.Errorf("decoding manifest %s: %s is not an object with metadata", file, gvk.Kind)
	}
	return obj, nil
}

// LoadAs reads the single object in file, which must be a T.
func LoadAs[T client.Object](scheme *runtime.Scheme, files fs.FS, file string) (T, error) {
	var none T
	obj, err := Load(scheme, files, file)
	if err != nil {
		return none, err
	}
	typed, ok := obj.(T)
	if !ok {
		return none, fmt.Errorf("decoding manifest %s: it is a %T, not a %T", file, obj, none)
	}
	return typed, nil
}
