// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// infrastructure describes the network of a cluster, in the file format of the compatible product.
type infrastructure struct {
	Region           string `json:"region"`
	InfraID          string `json:"infraID"`
	MachineCIDR      string `json:"machineCIDR"`
	ComputeCIDR      string `json:"computeCIDR"`
	VPCID            string `json:"vpcID"`
	Zones            []zone `json:"zones"`
	Zone             string `json:"zone"`
	PrivateSubnetID  string `json:"privateSubnetID"`
	SecurityGroupID  string `json:"securityGroupID"`
	BaseDomain       string `json:"baseDomain"`
	BaseDomainPrefix string `json:"baseDomainPrefix"`
	PublicZoneID     string `json:"publicZoneID"`
	PrivateZoneID    string `json:"privateZoneID"`
	LocalZoneID      string `json:"localZoneID"`
	ProxyAddr        string `json:"proxyAddr"`
}

type zone struct {
	Name     string `json:"name"`
	SubnetID string `json:"subnetID"`
}

// identities describes the roles of a cluster, in the file format of the compatible product.
type identities struct {
	ProfileName               string              `json:"profileName"`
	InfraID                   string              `json:"infraID"`
	IssuerURL                 string              `json:"issuerURL"`
	Roles                     hyperv1.AWSRolesRef `json:"roles"`
	KMSKeyARN                 string              `json:"kmsKeyARN"`
	KMSProviderRoleARN        string              `json:"kmsProviderRoleARN"`
	SharedIngressRoleARN      string              `json:"sharedIngressRoleARN"`
	SharedControlPlaneRoleARN string              `json:"sharedControlPlaneRoleARN"`
}

// read reads the file named by a flag.
func read(flag, name string, into any) error {
	raw, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %s is not JSON of its form: %w", flag, name, err)
	}
	return nil
}

// subnet returns the subnet of a zone, or the first one. Older files have one zone, in separate fields.
func (i infrastructure) subnet(name string) (zone, error) {
	zones := i.Zones
	if len(zones) == 0 && i.PrivateSubnetID != "" {
		zones = []zone{{Name: i.Zone, SubnetID: i.PrivateSubnetID}}
	}
	var names []string
	for _, z := range zones {
		if z.Name == name || name == "" {
			return z, nil
		}
		names = append(names, z.Name)
	}
	if len(zones) == 0 {
		return zone{}, errors.New("--infra-json names no zones with a subnet for machines")
	}
	return zone{}, fmt.Errorf("--zones %q: use one of %s, which --infra-json names; further NodePools may be in others", name, strings.Join(names, ", "))
}
