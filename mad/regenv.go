package mad

// Registers of Mellanox' devices about what is around the chip: temperatures,
// fans, power supplies. They are read through MlnxAccessRegister and
// AccessRegister.

// MTMP is a sensor of temperature.
//
// Sensor 0 is the chip itself; 64 and up are the modules, 64 that in the first cage.
//
//mad:header size=32 section=vendor register=0x900a
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb mtmp_ext
//mad:source linux drivers/net/ethernet/mellanox/mlxsw/reg.h mtmp
type MTMP struct {
	_ uint8 `mad:"0:8"`
	_ uint8 `mad:"8:4"`
	// SlotIndex is the slot of a modular system; 0 is the main board.
	SlotIndex uint8 `mad:"12:4"`
	_         uint8 `mad:"16:4"`
	// SensorIndex is the sensor that is meant.
	SensorIndex uint16   `mad:"20:12"`
	_           [2]uint8 `mad:"32:8"`
	// Temperature is what the sensor measures, in degrees Celsius.
	Temperature uint16 `mad:"48:16,ro,signed,scale=8"`
	// MTE: MaxTemperature is measured.
	MTE bool `mad:"64:1"`
	// MTR: forget MaxTemperature.
	MTR bool  `mad:"65:1,w1c"`
	_   uint8 `mad:"66:6"`
	_   uint8 `mad:"72:8"`
	// MaxTemperature is the highest that it has measured, where MTE is set.
	MaxTemperature uint16 `mad:"80:16,ro,signed,scale=8"`
	// TEE says whether it sends events of that: 0 never, 1 each time, 2 once.
	TEE uint8 `mad:"96:2"`
	_   uint8 `mad:"98:6"`
	_   uint8 `mad:"104:8"`
	// TemperatureThresholdHi is from where on the device warns.
	TemperatureThresholdHi uint16   `mad:"112:16,signed,scale=8"`
	_                      [2]uint8 `mad:"128:8"`
	// TemperatureThresholdLo is where the warning ends.
	TemperatureThresholdLo uint16   `mad:"144:16,signed,scale=8"`
	_                      [4]uint8 `mad:"160:8"`
	// SensorName is what the device calls the sensor.
	SensorName [8]byte `mad:"192:64,ro,text"`
}

// MTCAP says which sensors of temperature there are.
//
//mad:header size=16 section=vendor register=0x9009
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb mtcap_ext
//mad:source linux include/linux/mlx5/mlx5_ifc.h mlx5_ifc_mtcap_reg_bits
//mad:source linux drivers/net/ethernet/mellanox/mlxsw/reg.h mtcap (sensor_count)
type MTCAP struct {
	_ [3]uint8 `mad:"0:8"`
	_ uint8    `mad:"24:1"`
	// SensorCount is the number of sensors, those of modules left out.
	SensorCount uint8    `mad:"25:7,ro"`
	_           [4]uint8 `mad:"32:8"`
	// SensorMap has a bit for each sensor that there is.
	SensorMap uint64 `mad:"64:64,ro,hex"`
}

// MFCR says which fans there are, and how they are driven.
//
//mad:header size=8 section=vendor register=0x9001
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb mfcr_ext
//mad:source linux drivers/net/ethernet/mellanox/mlxsw/reg.h mfcr
type MFCR struct {
	_ [3]uint8 `mad:"0:8"`
	_ uint8    `mad:"24:1"`
	// PWMFrequency is the code of the frequency that drives the fans.
	PWMFrequency uint8 `mad:"25:7,hex,name=pwm_frequency"`
	_            uint8 `mad:"32:6"`
	// TachoActive has a bit for each fan that is measured: the tachometers of MFSM.
	TachoActive uint16 `mad:"38:10,ro,hex"`
	_           uint8  `mad:"48:8"`
	_           uint8  `mad:"56:3"`
	// PWMActive has a bit for each drive in use.
	PWMActive uint8 `mad:"59:5,ro,hex,name=pwm_active"`
}

// MFSM is the speed of a fan.
//
//mad:header size=8 section=vendor register=0x9003
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb mfsm_ext
//mad:source linux drivers/net/ethernet/mellanox/mlxsw/reg.h mfsm
type MFSM struct {
	_ uint8 `mad:"0:4"`
	// Tacho is the fan that is meant.
	Tacho uint8    `mad:"4:4"`
	_     [5]uint8 `mad:"8:8"`
	// RPM is its speed, in turns a minute.
	RPM uint16 `mad:"48:16,ro"`
}

// MSPS is the state of the power supplies. Nothing public says what its bits mean.
//
//mad:header size=160 section=vendor register=0x900d unconfirmed
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb msps_ext
type MSPS struct {
	// PSU0 is the state of the first supply, as it came.
	PSU0 [80]byte `mad:"0:640,ro,bytes"`
	// PSU1 is that of the second.
	PSU1 [80]byte `mad:"640:640,ro,bytes"`
}
