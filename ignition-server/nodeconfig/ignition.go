// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"encoding/base64"

	"github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/utils/ptr"
)

func file(path string, mode int, content []byte) types.File {
	return types.File{
		Node: types.Node{Path: path, Overwrite: ptr.To(true)},
		FileEmbedded1: types.FileEmbedded1{
			Mode:     ptr.To(mode),
			Contents: types.Resource{Source: ptr.To("data:;base64," + base64.StdEncoding.EncodeToString(content))},
		},
	}
}

func directory(path string) types.Directory {
	return types.Directory{
		Node:               types.Node{Path: path},
		DirectoryEmbedded1: types.DirectoryEmbedded1{Mode: ptr.To(0o755)},
	}
}
