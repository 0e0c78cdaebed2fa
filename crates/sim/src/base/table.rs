//! One table per kind of part: a line in it is all that makes an algorithm known.
//!
//! [`table!`] makes of `cubic::Cubic { "cubic", "cubic@5.4" => Cubic::parse }` the module `cubic`, a variant `Cubic` of
//! the enum, its arm of the static dispatch, the constructor behind the names, and their entries in the list of names.
//! An enum and not a `dyn`: one indirect call per packet and hop is most of what a simple queue costs. A type that has
//! much to remember stands `in Box`, or it would make each of the others longer.

/// See the head of this file. `$d` is a dollar sign, for the macro that this macro makes.
macro_rules! table {
    (
        $d:tt
        $(#[$about:meta])*
        enum $Known:ident $(and $(#[$beside:meta])* $Outside:ident($Out:ty))*;
        dispatch $dispatch:ident;
        list $LIST:ident: $Entry:ty = $entry:ident;
        make $make:ident($words:ident: $Words:ty, $env:ident: $Env:ty) -> $Error:ty;
        $( $file:ident::$Type:ident $(in $Holder:ident)? { $( $($name:literal),+ => $new:expr ),+ $(,)? } )+
    ) => {
        $( mod $file; )+
        $( pub use $file::$Type; )+

        $(#[$about])*
        pub enum $Known {
            $(
                #[doc = concat!($($("`", $name, "` "),+),+)]
                $Type($crate::base::table::table!(@held $Type $($Holder)?)),
            )+
            $(
                $(#[$beside])*
                $Outside($Out),
            )*
        }

        /// Does something with whichever it is, without an indirect call.
        macro_rules! $dispatch {
            ($d of:expr, $d it:ident => $d result:expr) => {
                match $d of {
                    $( $Known::$Type($d it) => $d result, )+
                    $( $Known::$Outside($d it) => $d result, )*
                }
            };
        }

        /// What is known, in the order of the table.
        pub const $LIST: &[$Entry] = &[$($($($entry::<$Type>($name)),+),+),+];

        /// What stands behind `name`; none if nothing does.
        fn $make(name: &str, $words: $Words, $env: $Env) -> Option<Result<$Known, $Error>> {
            match name {
                $($(
                    $($name)|+ => Some($new($words, $env).map(|made| $Known::$Type(made.into()))),
                )+)+
                _ => None,
            }
        }
    };
    (@held $Type:ident) => { $Type };
    (@held $Type:ident $Holder:ident) => { $Holder<$Type> };
}

pub(crate) use table;
